// Goroutines that go on in other threads: they wait for each other, and long calls are preempted.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

var leaves, rounds, workers, spins atomic.Int64

//go:noinline
func leaf(n int) int {
	leaves.Add(1)
	sum := 0
	for i := 0; i < n; i++ {
		sum += i
	}
	return sum
}

//go:noinline
func spin(n int) int {
	spins.Add(1)
	sum := n
	for i := 0; i < 300000; i++ {
		sum = sum*31 + i
	}
	return sum
}

//go:noinline
func round(in chan int, out chan int) bool {
	rounds.Add(1)
	value, more := <-in
	if more {
		out <- leaf(value)
	}
	return more
}

//go:noinline
func worker(in chan int, out chan int, all *sync.WaitGroup) {
	defer all.Done()
	workers.Add(1)
	sum := 0
	for round(in, out) {
		sum += spin(sum)
		runtime.Gosched()
	}
	if sum == 1 {
		fmt.Println(sum)
	}
}

func main() {
	in, out := make(chan int), make(chan int)
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go worker(in, out, &all)
	}
	go func() {
		for i := 0; i < 60; i++ {
			in <- i
		}
		close(in)
	}()
	sum := 0
	for i := 0; i < 60; i++ {
		sum += <-out
	}
	all.Wait()
	fmt.Println("leaf", leaves.Load(), "round", rounds.Load(), "worker", workers.Load(), "spin", spins.Load())
}
