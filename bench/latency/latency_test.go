package main

import (
	"os"
	"testing"
)

func TestOptions(t *testing.T) {
	for name, arguments := range map[string][]string{
		"no number": {"-trials", "many"}, "fewer than are timed": {"-trials", "10", "-samples", "20"}, "nobody out": {"-pending", "0"},
	} {
		if o, err := parse(arguments); err == nil {
			t.Errorf("%s: accepted as %+v", name, o)
		}
	}
	if o, err := parse([]string{"-trials", "900,600"}); err != nil || o.sizes[0] != 600 || o.sizes[1] != 900 {
		t.Errorf("got %+v, %v", o, err)
	}
}

// The search is measured to the end, and the memory of a process can be read
// where there is a /proc. The server's part builds and starts one: too long here.
func TestASmallRun(t *testing.T) {
	o, err := parse([]string{"-trials", "30", "-samples", "10", "-pending", "4", "-parameters", "3", "-server=false"})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		return
	}
	if bytes, err := resident(os.Getpid()); err != nil || bytes < 1<<20 {
		t.Errorf("this process has %d bytes, %v", bytes, err)
	}
}
