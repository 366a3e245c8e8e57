package process

import (
	"strings"
	"syscall"
	"testing"
)

func TestMemoryThatRanOutIsSaid(t *testing.T) {
	for name, test := range map[string]struct {
		exit   Exit
		errors []string
		want   string
	}{
		"at the limit of its group":      {Exit{Code: -1, Signal: syscall.SIGKILL, Peak: 1 << 29, OutOfMemory: true}, nil, "out of memory: the kernel ended a process of it at its limit (it had 0.50 GiB at most"},
		"a child of it":                  {Exit{Code: 1, Peak: 1 << 29, OutOfMemory: true}, []string{"a worker died"}, "out of memory: the kernel ended a process of it"},
		"python":                         {Exit{Code: 1, Peak: 3 << 29}, []string{"Traceback", "MemoryError"}, "out of memory (one of its processes had 1.50 GiB at most): exit code 1: MemoryError"},
		"numpy":                          {Exit{Code: 1}, []string{"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8 GiB"}, "out of memory ("},
		"cuda":                           {Exit{Code: 1}, []string{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"}, "out of memory ("},
		"said before something else was": {Exit{Code: 1}, []string{"MemoryError", "ValueError: x"}, "exit code 1: ValueError"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Describe(test.exit, test.errors); !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
