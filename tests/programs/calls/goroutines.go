// Goroutines that hand values to each other, one stack that grows, a panic that is recovered.
package main

import "fmt"

//go:noinline
func leaf(n int) int { return n + 1 }

//go:noinline
func deep(n int) int {
	var room [256]byte
	room[n%256] = byte(n)
	if n == 0 {
		return leaf(int(room[0]))
	}
	return deep(n-1) + int(room[n%256])&1
}

//go:noinline
func recovered(n int) (result int) {
	defer func() {
		if recover() != nil {
			result = -1
		}
	}()
	if n%2 == 0 {
		panic("even")
	}
	return leaf(n)
}

func send(to chan<- int, count int) {
	for i := 0; i < count; i++ {
		to <- leaf(i)
	}
	close(to)
}

func main() {
	sum := 0
	for round := 0; round < 3; round++ {
		numbers := make(chan int)
		go send(numbers, 5)
		for n := range numbers {
			sum += leaf(n)
		}
		sum += deep(100) + recovered(round)
	}
	fmt.Println(sum)
}
