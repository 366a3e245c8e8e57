package profiler

import (
	"errors"
	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/profiler/rapl"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// series plays GPUs back from a file of testdata: a row for each second and GPU.
type series struct {
	known  []gpuDevice
	begun  time.Time
	rows   [][]uint64    // second, GPU, the metrics, energy
	lasts  time.Duration // then the driver does not answer any more, if above 0,
	wakes  chan struct{} // until this is closed
	closed bool
}

// play reads the series, which begins now.
func play(t *testing.T) *series {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "gpu-made-by-hand.csv"))
	if err != nil {
		t.Fatal(err)
	}
	s := &series{known: []gpuDevice{{"V100", "GPU-aa11"}, {"V100", "GPU-bb22"}}, begun: time.Now(), wakes: make(chan struct{})}
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var row []uint64
		for field := range strings.SplitSeq(strings.TrimSpace(line), ",") {
			number, err := strconv.ParseUint(field, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, number)
		}
		s.rows = append(s.rows, row)
	}
	return s
}

func (s *series) devices() []gpuDevice { return s.known }

// now is the row of the second that it is.
func (s *series) now(device int) []uint64 {
	second := uint64(time.Since(s.begun) / time.Second)
	for _, row := range slices.Backward(s.rows) {
		if row[0] <= second && row[1] == uint64(device) {
			return row
		}
	}
	return nil
}

func (s *series) joules(device int) (float64, error) {
	return float64(s.now(device)[2+gpuMetricCount]) / 1000, nil
}

func (s *series) read(device int) (raw rawGPU) {
	if s.lasts > 0 && time.Since(s.begun) >= s.lasts {
		<-s.wakes
	}
	copy(raw.value[:], s.now(device)[2:])
	return raw
}

func (s *series) close() { s.closed = true }

// recordGPUs plays the series to a recorder of a command with the environment.
// It must be called in a bubble.
func recordGPUs(t *testing.T, s *series, environment ...string) *Recorder {
	t.Helper()
	open := func() (gpuReader, error) { return s, nil }
	options := RecorderOptions{Leader: 10, Root: t.TempDir(), Environment: append([]string{"HOME=/"}, environment...)}
	return record(perf.OpenCounters(nil), options, open)
}

func TestGPUsAreInTheProfileOfEachEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recordGPUs(t, play(t))
		defer r.Stop()
		time.Sleep(time.Second / 2) // between the samples
		r.Lap()                     // the start
		time.Sleep(3 * time.Second) // with samples at seconds 1 to 3
		lap := r.Lap()
		for name, want := range map[string]float64{
			"gpu.core_utilization":              ((.95+.40)/2 + (.98+.42)/2 + (.99+.41)/2) / 3,
			"gpu.memory_used_bytes":             2 * 8388608000,
			"gpu.power_watts":                   (360 + 410 + 423) / 3.0,
			"gpu.temperature_celsius":           (48.5 + 54 + 59.5) / 3,
			"gpu.pcie_receive_bytes_per_second": 1024 * (1350000 + 1380000 + 1365000) / 3.0,
			"gpu.throttled":                     (0 + .5 + .5) / 3, // one of two, by the power cap
		} {
			if got, told := lap.HostValue(name); !told || !near(got/want, 1) {
				t.Errorf("%s is %g, want %g", name, got, want)
			}
		}
		if slices.ContainsFunc(lap.Missing, func(m proc.Missing) bool { return strings.HasPrefix(m.Name, "gpu") }) {
			t.Errorf("missing %v", lap.Missing)
		}
		time.Sleep(time.Second / 4)
		if watts, told := r.Lap().HostValue("gpu.power_watts"); !told || watts != 423 {
			t.Errorf("a lap shorter than a second has %g W, not the last sample's 423", watts)
		}
	})
}

func TestOnlyVisibleGPUsAreInTheProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recordGPUs(t, play(t), "CUDA_VISIBLE_DEVICES=1")
		defer r.Stop()
		time.Sleep(2*time.Second + time.Second/2)
		for _, metric := range r.Whole().Host {
			if metric.Name == "gpu.core_utilization" && !near(*metric.Highest, .42) {
				t.Errorf("the second GPU was at most 42%% busy, got %g", *metric.Highest)
			}
		}
		if watts, told := r.Whole().HostValue("gpu.power_watts"); !told || watts > 126 {
			t.Errorf("%g W, of one GPU with at most 126", watts)
		}
	})
}

func TestWhyThereAreNoGPUs(t *testing.T) {
	for name, test := range map[string]struct {
		environment string
		open        func(*series) (gpuReader, error)
		reason      string
	}{
		"no driver":    {"A=1", func(*series) (gpuReader, error) { return nil, errors.New("no driver") }, "no driver"},
		"none visible": {"CUDA_VISIBLE_DEVICES=", func(s *series) (gpuReader, error) { return s, nil }, "names no GPU"},
		"parts":        {"CUDA_VISIBLE_DEVICES=MIG-1", func(s *series) (gpuReader, error) { return s, nil }, "MIG"},
		"a slow driver": {"A=1", func(s *series) (gpuReader, error) {
			time.Sleep(time.Hour)
			return s, nil
		}, "had not answered yet"},
		"a dead driver": {"A=1", func(s *series) (gpuReader, error) {
			s.lasts = 2 * time.Second
			return s, nil
		}, "has not answered for"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := play(t)
				options := RecorderOptions{Leader: 10, Root: t.TempDir(), Environment: []string{test.environment}}
				r := record(perf.OpenCounters(nil), options, func() (gpuReader, error) { return test.open(s) })
				time.Sleep(20 * time.Second)
				r.Lap()
				time.Sleep(time.Second)
				p := r.Lap() // does not wait for the driver
				at := slices.IndexFunc(p.Missing, func(m proc.Missing) bool { return m.Name == "gpu" })
				if at < 0 || !strings.Contains(p.Missing[at].Reason, test.reason) {
					t.Errorf("missing %v, want a reason with %q", p.Missing, test.reason)
				}
				if slices.ContainsFunc(p.Host, func(m HostMetric) bool { return strings.HasPrefix(m.Name, "gpu") }) {
					t.Errorf("got %v", p.Host)
				}
				r.Stop()
				close(s.wakes) // it answers after all
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				if test.reason != "no driver" && !s.closed {
					t.Error("the driver's library is still open")
				}
			})
		})
	}
}

func TestVisibleGPUs(t *testing.T) {
	alike := []gpuDevice{{"A", "GPU-aa11"}, {"A", "GPU-aa22"}, {"A", "GPU-bb33"}}
	mixed := []gpuDevice{{"A", "GPU-aa11"}, {"B", "GPU-aa22"}}
	for name, test := range map[string]struct {
		environment []string
		devices     []gpuDevice
		want        []int
		refused     string
	}{
		"not given":          {[]string{"PATH=/bin"}, alike, []int{0, 1, 2}, ""},
		"no variables":       {[]string{}, alike, []int{0, 1, 2}, ""},
		"empty":              {[]string{"CUDA_VISIBLE_DEVICES="}, alike, nil, ""},
		"none":               {[]string{"CUDA_VISIBLE_DEVICES=-1"}, alike, nil, ""},
		"numbers":            {[]string{"CUDA_VISIBLE_DEVICES=2, 0"}, alike, []int{2, 0}, ""},
		"the last one wins":  {[]string{"CUDA_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=1"}, alike, []int{1}, ""},
		"up to a wrong one":  {[]string{"CUDA_VISIBLE_DEVICES=1,7,0"}, alike, []int{1}, ""},
		"twice the same":     {[]string{"CUDA_VISIBLE_DEVICES=1,1"}, alike, []int{1}, ""},
		"a name":             {[]string{"CUDA_VISIBLE_DEVICES=GPU-bb33"}, alike, []int{2}, ""},
		"its beginning":      {[]string{"CUDA_VISIBLE_DEVICES=GPU-bb"}, alike, []int{2}, ""},
		"of two":             {[]string{"CUDA_VISIBLE_DEVICES=GPU-aa"}, alike, nil, ""},
		"a part":             {[]string{"CUDA_VISIBLE_DEVICES=MIG-GPU-aa11/1/0"}, alike, nil, "MIG"},
		"numbers of mixed":   {[]string{"CUDA_VISIBLE_DEVICES=1"}, mixed, nil, "PCI_BUS_ID"},
		"in the bus's order": {[]string{"CUDA_VISIBLE_DEVICES=1", "CUDA_DEVICE_ORDER=PCI_BUS_ID"}, mixed, []int{1}, ""},
		"names of mixed":     {[]string{"CUDA_VISIBLE_DEVICES=GPU-aa22"}, mixed, []int{1}, ""},
		"all of mixed":       {[]string{"PATH=/bin"}, mixed, []int{0, 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := visibleGPUs(test.environment, test.devices)
			if (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) || !slices.Equal(got, test.want) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func FuzzVisibleGPUs(f *testing.F) {
	for _, list := range []string{"", "0,1", "GPU-aa", "1,-1,0", "MIG-1", " 2 ,, 0", "99999999999999999999"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		devices := []gpuDevice{{"A", "GPU-aa11"}, {"A", ""}, {"A", "GPU-bb33"}}
		visible, err := visibleGPUs([]string{"CUDA_VISIBLE_DEVICES=" + list}, devices)
		slices.Sort(visible)
		if len(visible) > 0 && (err != nil || visible[0] < 0 || visible[len(visible)-1] > 2 || len(slices.Compact(visible)) != len(visible)) {
			t.Errorf("%q names %v, %v", list, visible, err)
		}
	})
}

// TestEnergyOfVisibleGPUs: each command pays for the GPUs it may use, and those
// that share one split it.
func TestEnergyOfVisibleGPUs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := packages(t)
		m := &Meter{options: MeterOptions{Slots: 3, Cores: 1}, host: proc.NewHost(root)}
		cpu, err := rapl.Open(m.host)
		if err != nil {
			t.Fatal(err)
		}
		m.cpu = cpu
		m.use(play(t))
		idle := func() float64 { return 0 }
		both, second, none := m.OpenFor([]string{"A=1"}, idle), m.OpenFor([]string{"CUDA_VISIBLE_DEVICES=1"}, idle), m.OpenFor([]string{"CUDA_VISIBLE_DEVICES="}, idle)
		time.Sleep(3*time.Second + time.Second/2)
		for _, test := range []struct {
			window *Window
			joules float64
			method string
		}{
			{both, 788 + 354.0/2, "estimate: rapl shared by CPU time, nvml shared equally"},
			{second, 354.0 / 2, "estimate: rapl shared by CPU time, nvml shared equally"},
			{none, 0, "estimate: rapl shared by CPU time"},
		} {
			if got := test.window.Lap(); !near(got.Joules, test.joules) || got.Method != test.method {
				t.Errorf("got %+v, want %g J by %q", got, test.joules, test.method)
			}
		}
		both.Close()
		time.Sleep(time.Second)
		if got := second.Lap(); !near(got.Joules, 66) {
			t.Errorf("alone on its GPU: got %+v, want 66 J", got)
		}
		m.Close()
	})
}
