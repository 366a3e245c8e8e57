package emulator

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// memoryGauge reads the memory of this process through files that were opened
// before it was locked in.
type memoryGauge struct {
	status *os.File
	reset  *os.File // nil: the peak is that since the start
}

// memoryNow is in bytes.
type memoryNow struct {
	resident, peak int64
	// data is what the kernel's limit on data counts: what is private and
	// writable, used or not.
	data int64
}

func openMemoryGauge() (*memoryGauge, error) {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return nil, fmt.Errorf("the memory of a process cannot be read: %w", err)
	}
	g := &memoryGauge{status: status}
	if reset, err := os.OpenFile("/proc/self/clear_refs", os.O_WRONLY, 0); err == nil {
		g.reset = reset
	}
	return g, nil
}

// forgetPeak lets the peak begin at what is resident now.
func (g *memoryGauge) forgetPeak() {
	if g.reset != nil {
		_, _ = g.reset.WriteString("5") // not every kernel can: then the peak is an earlier one
	}
}

func (g *memoryGauge) read() (memoryNow, error) {
	content := make([]byte, 8<<10)
	n, err := g.status.ReadAt(content, 0)
	if n == 0 {
		return memoryNow{}, fmt.Errorf("read the memory of this process: %w", err)
	}
	var now memoryNow
	for line := range bytes.Lines(content[:n]) {
		fields := bytes.Fields(line)
		if len(fields) != 3 || string(fields[2]) != "kB" {
			continue
		}
		kib, err := strconv.ParseInt(string(fields[1]), 10, 64)
		if err != nil {
			continue
		}
		switch string(fields[0]) {
		case "VmHWM:":
			now.peak = kib << 10
		case "VmRSS:":
			now.resident = kib << 10
		case "VmData:":
			now.data = kib << 10
		}
	}
	if now.data == 0 || now.resident == 0 {
		return now, fmt.Errorf("the kernel does not tell the memory of a process")
	}
	return now, nil
}
