// cilium/ebpf's perf.Reader over the map at descriptor 3: for each line "N" on stdin it reads N samples and prints how many
// nanoseconds that took. usage: cilium_reader RING_BYTES Read|ReadInto (a record of its own each time, or the same one again)
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/perf"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, "cilium_reader:", err)
	os.Exit(1)
}

func main() {
	ringBytes, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fail(err)
	}
	events, err := ebpf.NewMapFromFD(3)
	if err != nil {
		fail(err)
	}
	reader, err := perf.NewReader(events, ringBytes)
	if err != nil {
		fail(err)
	}
	var record perf.Record
	next := func() error { return reader.ReadInto(&record) }
	if os.Args[2] == "Read" {
		next = func() (err error) { record, err = reader.Read(); return }
	}
	fmt.Println("ready")
	sum := 0
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		want, err := strconv.Atoi(lines.Text())
		if err != nil {
			fail(err)
		}
		start := time.Now()
		for read := 0; read < want; {
			if err := next(); err != nil {
				fail(err)
			}
			if record.LostSamples != 0 {
				continue
			}
			sum += int(record.RawSample[0])
			read++
		}
		fmt.Println(time.Since(start).Nanoseconds(), sum)
	}
}
