// Waits of Go: goroutines in blocking system calls of their own threads, and threads of the runtime with nothing to do.
package main

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

func descend(depth int, last func()) int {
	if depth > 0 {
		return descend(depth-1, last) + 1
	}
	last()
	return 0
}

func readPipe() {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		os.Exit(1)
	}
	buffer := make([]byte, 8)
	syscall.Read(ends[0], buffer)
}

func napHere() {
	nap := syscall.Timespec{Sec: 600}
	syscall.Nanosleep(&nap, nil)
}

func locked(last func()) {
	runtime.LockOSThread()
	last()
}

func main() {
	for i := 0; i < 4; i++ {
		depth := i * 10
		go descend(depth, readPipe)
		go descend(depth, napHere)
	}
	go locked(readPipe)
	go locked(func() { select {} })
	go locked(func() { time.Sleep(600 * time.Second) })
	go func() { runtime.GC(); time.Sleep(600 * time.Second) }()
	time.Sleep(600 * time.Second)
}
