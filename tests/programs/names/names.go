// Functions of Go with known numbers of calls: leaf() 100 of worker(), which main() calls once.
package main

type number interface{ ~int | ~uint8 }

//go:noinline
func twice[N number](value N) N { return value + value }

//go:noinline
func leaf(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += twice(i) + int(twice(uint8(i)))
	}
	return sum
}

//go:noinline
func worker(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += leaf(i % 3)
	}
	return sum
}

func main() {
	println(worker(100))
}
