// The design of goebpf's reader, written anew: every event wakes; one goroutine polls the descriptors, one goes through the rings
// that are ready: header and rest of each record are copied into memory of their own, the header is decoded by reflection
// (encoding/binary), the payload goes through an unbuffered channel; the tail moves when the ring is empty. The ring is C's:
// each load of the head, copy and poll is a call through cgo.
// Over the map at descriptor 3: for each line "N" on stdin it receives N samples and prints how many nanoseconds that took.
// usage: goebpf_design RING_BYTES CPU...
package main

/*
#include <poll.h>
#include <stdint.h>
#include <string.h>

static uint64_t load_position(void *at) { return __atomic_load_n((uint64_t *)at, __ATOMIC_ACQUIRE); }
static void store_position(void *at, uint64_t position) { __atomic_store_n((uint64_t *)at, position, __ATOMIC_SEQ_CST); }
static void copy_bytes(void *to, void *from, size_t bytes) { memcpy(to, from, bytes); }
static int poll_all(void *fds, int count, int ms) { return poll(fds, count, ms); }
*/
import "C"

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

const (
	sysBpf           = 321
	sysPerfEventOpen = 298
	page             = 4096
	headAt           = 1024
	tailAt           = 1032
)

type pollFd struct {
	fd              int32
	events, revents int16
}

type ring struct {
	fd     int
	memory []byte
}

func fail(what string, err error) {
	fmt.Fprintln(os.Stderr, "goebpf_design:", what, err)
	os.Exit(1)
}

func (r *ring) at(offset int) unsafe.Pointer { return unsafe.Pointer(&r.memory[offset]) }

func open(cpu, ringBytes int) *ring {
	// struct perf_event_attr: software event BPF_OUTPUT, period 1, raw samples, a wake-up for each event.
	attr := [16]uint64{0: 1 | 112<<32, 1: 10, 2: 1, 3: 1 << 10, 6: 1}
	fd, _, errno := syscall.Syscall6(sysPerfEventOpen, uintptr(unsafe.Pointer(&attr)), ^uintptr(0), uintptr(cpu), ^uintptr(0), 8, 0)
	if errno != 0 {
		fail("perf_event_open", errno)
	}
	memory, err := syscall.Mmap(int(fd), 0, page+ringBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		fail("mmap", err)
	}
	key, value := uint32(cpu), uint32(fd)
	update := [4]uint64{3, uint64(uintptr(unsafe.Pointer(&key))), uint64(uintptr(unsafe.Pointer(&value))), 0}
	if _, _, errno := syscall.Syscall(sysBpf, 2, uintptr(unsafe.Pointer(&update)), unsafe.Sizeof(update)); errno != 0 {
		fail("map update", errno)
	}
	return &ring{int(fd), memory}
}

type header struct {
	Type uint32
	Misc uint16
	Size uint16
}

// next returns a copy of the ring's next n bytes, around its end.
func (r *ring) next(at *uint64, n int) []byte {
	size, bytes := len(r.memory)-page, make([]byte, n)
	offset := int(*at % uint64(size))
	first := size - offset
	if first > n {
		first = n
	}
	C.copy_bytes(unsafe.Pointer(&bytes[0]), r.at(page+offset), C.size_t(first))
	if first < n {
		C.copy_bytes(unsafe.Pointer(&bytes[first]), r.at(page), C.size_t(n-first))
	}
	*at += uint64(n)
	return bytes
}

func (r *ring) drain(samples chan<- []byte) {
	at := uint64(C.load_position(r.at(tailAt)))
	for at != uint64(C.load_position(r.at(headAt))) {
		var h header
		if err := binary.Read(bytes.NewReader(r.next(&at, 8)), binary.LittleEndian, &h); err != nil {
			fail("header", err)
		}
		rest := r.next(&at, int(h.Size)-8)
		if h.Type == 9 {
			samples <- rest[4 : 4+binary.LittleEndian.Uint32(rest)]
		}
	}
	C.store_position(r.at(tailAt), C.uint64_t(at))
}

func poll(rings []*ring, ready chan<- *ring) {
	fds := make([]pollFd, len(rings))
	for {
		for i, r := range rings {
			fds[i] = pollFd{int32(r.fd), 1, 0}
		}
		C.poll_all(unsafe.Pointer(&fds[0]), C.int(len(fds)), 100)
		for i := range fds {
			if fds[i].revents != 0 {
				ready <- rings[i]
			}
		}
	}
}

// Until the tail has moved behind what was taken, or the next records may find the ring full.
func (r *ring) settle() {
	for C.load_position(r.at(tailAt)) != C.load_position(r.at(headAt)) {
		time.Sleep(50 * time.Microsecond)
	}
}

func main() {
	ringBytes, _ := strconv.Atoi(os.Args[1])
	var rings []*ring
	for _, text := range os.Args[2:] {
		cpu, _ := strconv.Atoi(text)
		rings = append(rings, open(cpu, ringBytes))
	}
	ready, samples := make(chan *ring), make(chan []byte)
	go poll(rings, ready)
	go func() {
		for r := range ready {
			r.drain(samples)
		}
	}()
	fmt.Println("ready")
	sum := 0
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		want, _ := strconv.Atoi(lines.Text())
		start := time.Now()
		for i := 0; i < want; i++ {
			sum += int((<-samples)[0])
		}
		took := time.Since(start)
		for _, r := range rings {
			r.settle()
		}
		fmt.Println(took.Nanoseconds(), sum)
	}
}
