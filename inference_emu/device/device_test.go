package device_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/internal/problem"
)

func catalogue(t *testing.T) []device.Device {
	t.Helper()
	devices, err := device.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

func TestCatalogueHasTheDevicesOfTheThesisAndTheMeasurements(t *testing.T) {
	devices := catalogue(t)
	for _, name := range []string{"raspberry-pi-3b-plus", "raspberry-pi-4", "pixel-3a", "pixel-3", "intel-nuc-i7", "jetson-nano", "jetson-tx2",
		"jetson-agx-xavier", "odroid-n2-plus", "khadas-vim4", "rk3588s", "x86-server"} {
		if _, err := device.Find(devices, name); err != nil {
			t.Error(err)
		}
	}
}

// values walks over whatever a device is made of and returns each Value's path.
func values(path string, v reflect.Value, found map[string]reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			values(path, v.Elem(), found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			values(fmt.Sprintf("%s[%d]", path, i), v.Index(i), found)
		}
	case reflect.Struct:
		if strings.HasPrefix(v.Type().Name(), "Value[") {
			found[path] = v
			return
		}
		for i := range v.NumField() {
			values(strings.TrimPrefix(path+"."+v.Type().Field(i).Tag.Get("yaml"), "."), v.Field(i), found)
		}
	}
}

func TestEveryValueOfTheCatalogueSaysWhereItIsFrom(t *testing.T) {
	for _, d := range catalogue(t) {
		found := map[string]reflect.Value{}
		values("", reflect.ValueOf(d), found)
		for path, value := range found {
			source := value.FieldByName("Source").String()
			if source == "" {
				t.Errorf("%s: %s has no source", d.Name, path)
			}
			if strings.Contains(source, "no measurement of ours") && !value.FieldByName("Estimated").Bool() {
				t.Errorf("%s: %s is an estimate and does not say so", d.Name, path)
			}
		}
	}
}

func TestRatesOfKnownDevices(t *testing.T) {
	pi, err := device.Find(catalogue(t), "raspberry-pi-4")
	if err != nil {
		t.Fatal(err)
	}
	if pi.Cores() != 4 || pi.Float32OperationsPerSecond() != 4*1.5e9*8 {
		t.Errorf("raspberry-pi-4: %d cores, %g operations a second", pi.Cores(), pi.Float32OperationsPerSecond())
	}
}

func TestFindSuggests(t *testing.T) {
	devices := catalogue(t)
	for name, want := range map[string]string{
		"raspbery":        "did you mean raspberry-pi-3b-plus or raspberry-pi-4?",
		"jetson-tx1":      "did you mean jetson-tx2?",
		"Raspberry-Pi-4":  "did you mean raspberry-pi-3b-plus or raspberry-pi-4?",
		"tx2":             "did you mean jetson-tx2?",
		"washing-machine": "known are intel-nuc-i7, jetson-agx-xavier",
		"":                "known are intel-nuc-i7",
	} {
		_, err := device.Find(devices, name)
		if !problem.Is(err, problem.NotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func board(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/my-board.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestUsersAddDevices(t *testing.T) {
	own, err := device.Read([]byte(board(t)))
	if err != nil {
		t.Fatal(err)
	}
	devices := catalogue(t)
	all := device.Add(devices, own)
	if got, err := device.Find(all, "my-board"); err != nil || len(all) != len(devices)+1 || got.Memory.Bytes.Value != 2<<30 {
		t.Fatalf("%v, %d devices, %v", got, len(all), err)
	}
	own.Name, own.Title = "raspberry-pi-4", "mine"
	all = device.Add(devices, own)
	if got, _ := device.Find(all, "raspberry-pi-4"); got.Title != "mine" || len(all) != len(devices) {
		t.Errorf("a device of a user does not take the place of a known one: %q of %d", got.Title, len(all))
	}
	if got, _ := device.Find(devices, "raspberry-pi-4"); got.Title == "mine" {
		t.Error("Add changed its argument")
	}
}

var unplaced = regexp.MustCompile(` \(line \d+\)`)

func TestFaultsNameFieldValueAndFix(t *testing.T) {
	cases := []struct{ name, from, to, want string }{
		{"no source", `, source: "the shop's page"}`, `}`, "processor.source: must say in 1 to 1000 bytes where the value is from"},
		{"unknown field", "power:", "colour: red\npower:", `unknown field "colour": leave it out`},
		{"unknown field within", "value: 2147483648,", "value: 2147483648, unit: bytes,", `unknown field "unit"`},
		{"wrong type", "value: 2147483648", "value: plenty", "memory.bytes.value: must be a whole number, not a string"},
		{"name", "name: my-board", "name: My Board", "name: must be 1 to 64 small letters and digits"},
		{"misspelt clusters", "clusters:", "clustersx:", `unknown field "clustersx"`},
		{"cores", "cores: {value: 4", "cores: {value: 0", "clusters[0].cores.value: must be between 1 and 1024 (got 0)"},
		{"clocks", "lowest_hertz: {value: 6e8", "lowest_hertz: {value: 6e9", "clusters[0].lowest_hertz.value: must be at most highest_hertz, 1.2e+09 (got 6e+09)"},
		{"steps", "value: [6e8, 1.2e9]", "value: [1.2e9, 6e8]", "clusters[0].steps_hertz.value[1]: must be higher than the one before it (got 6e+08)"},
		{"a step too high", "value: [6e8, 1.2e9]", "value: [6e8, 1.3e9]", "clusters[0].steps_hertz.value[1]: must be between 6e+08 and 1.2e+09"},
		{"watts", "idle_watts: {value: 1,", "idle_watts: {value: 9,", "power.load_watts.value: must be at least power.idle_watts, 9 (got 3)"},
		{"runtime", "value: onnx-runtime", "value: abacus", "default_runtime.value: must be one of onnx-runtime, tensorflow-lite"},
		{"accelerator", "kind: gpu", "kind: magic", "accelerators[0].kind: must be one of gpu, npu (got magic)"},
		{"no rate", `    float16_operations_per_second: {value: 1e10, source: "a guess", estimated: true}` + "\n", "", "accelerators[0]: computes with nothing"},
		{"octal", "value: 2147483648", "value: 017", "is read differently by different versions of YAML: write a decimal number, such as 1500000000 or 1.5e9, or text in quotes (got 017)"},
		{"infinity", "value: 2147483648", "value: .inf", "or text in quotes (got .inf)"},
		{"anchor", "power:", "x: &x 1\npower:", "uses an anchor"},
		{"tag", "name: my-board", "name: !!str my-board", "uses the tag !!str"},
		{"twice", "name: my-board", "name: my-board\nname: other", "name: is given twice, first in line 1: keep one of the two"},
		{"two documents", "power:", "---\npower:", "has several YAML documents"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(board(t), c.from, c.to, 1)
			if text == board(t) {
				t.Fatal("the case changes nothing")
			}
			_, err := device.Read([]byte(text))
			if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "(line ") || !strings.Contains(unplaced.ReplaceAllString(err.Error(), ""), c.want) {
				t.Errorf("%v\nwant %q with its line", err, c.want)
			}
		})
	}
}

func TestHugeAndHostileFilesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty":     "",
		"long":      "name: " + strings.Repeat("a", device.MaxFileBytes),
		"deep flow": "name: " + strings.Repeat("[", 20_000),
		"deep":      deep(500),
		"many":      "name: [" + strings.Repeat("1,", 20_000) + "1]",
		"null":      "null",
		"list":      "- 1\n- 2",
		"binary":    "\x00\xff\xfe",
	} {
		if _, err := device.Read([]byte(text)); !problem.Is(err, problem.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func deep(levels int) string {
	var b strings.Builder
	for i := range min(levels, 200) {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestThisMachine(t *testing.T) {
	m := device.Machine{Processor: "a fast one", Cores: 2, LowestHertz: 1e9, HighestHertz: 3e9, MemoryBytes: 8 << 30, MemoryBytesPerSecond: 1e10}
	for features, want := range map[string][3]float64{
		"avx512f avx512_vnni avx2 fma": {64, 64, 256}, "avx avx2 fma": {32, 32, 64}, "avx": {16, 16, 32},
		"asimd asimdhp asimddp": {16, 32, 64}, "": {8, 8, 16},
	} {
		m.Features = strings.Fields(features)
		d, err := m.Device()
		if err != nil {
			t.Fatal(err)
		}
		c := d.Clusters[0]
		if got := [3]float64{c.Float32OperationsPerCycle.Value, c.Float16OperationsPerCycle.Value, c.Int8OperationsPerCycle.Value}; got != want {
			t.Errorf("%q: %v operations a cycle, want %v", features, got, want)
		}
		if !c.Float32OperationsPerCycle.Estimated || !d.Power.LoadWatts.Estimated {
			t.Errorf("%q: what is guessed must say so", features)
		}
	}
	m.HighestHertz = 0
	if _, err := m.Device(); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "highest_hertz") {
		t.Errorf("a machine without a clock: %v", err)
	}
}

func TestTheExampleOfTheDocumentationIsADevice(t *testing.T) {
	page, err := os.ReadFile("../../docs/edge.md")
	if err != nil || !strings.Contains(string(page), "](../examples/edge-device/my-board.yaml)") {
		t.Fatalf("docs/edge.md has no example of a device: %v", err)
	}
	example, err := os.ReadFile("../../examples/edge-device/my-board.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if d, err := device.Read(example); err != nil || d.Accelerators[0].Kind != "gpu" {
		t.Errorf("%v %v", d, err)
	}
}

func FuzzRead(f *testing.F) {
	text, err := os.ReadFile("testdata/my-board.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("name: a\nclusters: [{core: x, cores: {value: 1e9}}]"))
	f.Add([]byte("a: {b: [1, {c: d}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := device.Read(data)
		switch {
		case err != nil && !problem.Is(err, problem.Invalid):
			t.Errorf("the error is no problem of the file: %v", err)
		case err == nil && (d.Cores() < 1 || !(d.Float32OperationsPerSecond() > 0)):
			t.Errorf("accepted %+v", d)
		}
	})
}
