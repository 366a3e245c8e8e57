package power_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/profiler/power"
)

// program is a script that prints what it is given.
func program(t *testing.T, body string) power.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "watts")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return power.Source("command:" + path)
}

func TestAProgramIsAMeter(t *testing.T) {
	began := time.Now()
	m, err := power.Open(program(t, "while echo 100; do sleep 0.05; done"), "/")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Name() != "watts" || m.Watts() != 100 {
		t.Errorf("it is %s with %g W", m.Name(), m.Watts())
	}
	opened := time.Now()
	first, err := m.Joules(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	second, err := m.Joules(time.Now())
	if least, most := 100*0.19, 100*time.Since(began).Seconds(); err != nil || second-first < least || second > most {
		t.Errorf("%g J after %v, then %g J, %v", first, opened.Sub(began), second, err)
	}
}

func TestWhatIsNoMeterIsRefused(t *testing.T) {
	for source, want := range map[power.Source]string{
		"watts":                             "must be hwmon, hwmon:NAME, command:PROGRAM",
		"command: ":                         "must be hwmon",
		"command:/no/such/program":          "start the meter",
		program(t, "echo 12 W"):             `it printed "12 W": want watts`,
		program(t, "echo -3"):               "-3 is no number of watts",
		program(t, "echo NaN"):              "want watts",
		program(t, "echo 9999999"):          "is no number of watts",
		program(t, "exit 3"):                "exit status 3",
		"hwmon:nothing-of-this-name-exists": "no sensor in /sys/class/hwmon has a power input",
	} {
		m, err := power.Open(source, "/")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", source, err, want)
		}
		if m != nil {
			m.Close()
		}
	}
}

// A meter that ends in the middle of a study is not taken for a machine without power.
func TestAMeterThatEndsIsAnError(t *testing.T) {
	m, err := power.Open(program(t, "echo 50; sleep 0.1; exit 7"), "/")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := m.Joules(time.Now()); err != nil {
			if !strings.Contains(err.Error(), "exit status 7") {
				t.Errorf("it says %v", err)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the joules of a meter that has ended are told")
		}
	}
}

func TestSensorsOfTheKernelAreAdded(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"hwmon0/name": "coretemp\n", "hwmon0/temp1_input": "40000\n",
		"hwmon1/name": "ina3221\n", "hwmon1/power1_input": "2500000\n", "hwmon1/power2_input": "1500000\n",
		"hwmon2/name": "power_meter\n", "hwmon2/power1_average": "90000000\n",
	} {
		path = filepath.Join(root, "sys/class/hwmon", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for source, want := range map[power.Source]struct {
		watts float64
		name  string
	}{"hwmon:ina3221": {4, "hwmon ina3221"}, "hwmon": {94, "hwmon ina3221+power_meter"}} {
		m, err := power.Open(source, root)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(m.Watts()-want.watts) > 1e-9 || m.Name() != want.name {
			t.Errorf("%s is %s with %g W, want %+v", source, m.Name(), m.Watts(), want)
		}
		m.Close()
	}
}

// What a Shelly plug, a Tasmota one and Redfish answer.
func TestADocumentInTheWebIsAMeter(t *testing.T) {
	pages := map[string]string{
		"/shelly":  `{"id":0,"output":true,"apower":61.5,"voltage":230.1}`,
		"/tasmota": `{"StatusSNS":{"ENERGY":{"Power":"61.5"}}}`,
		"/redfish": `{"PowerControl":[{"Name":"Chassis","PowerConsumedWatts":61.5}]}`,
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, found := pages[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "Basic eA==":
			w.WriteHeader(http.StatusUnauthorized)
		case !found:
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, page)
	}))
	defer site.Close()
	if _, err := power.Open(power.Source(site.URL+"/shelly#apower"), "/"); err == nil || !strings.Contains(err.Error(), "401") || !strings.Contains(err.Error(), power.Authorization) {
		t.Errorf("without a header: %v", err)
	}
	t.Setenv(power.Authorization, "Basic eA==")
	for _, field := range []string{"/shelly#apower", "/tasmota#StatusSNS.ENERGY.Power", "/redfish#PowerControl.0.PowerConsumedWatts"} {
		m, err := power.Open(power.Source(site.URL+field), "/")
		if err != nil {
			t.Errorf("%s: %v", field, err)
			continue
		}
		if m.Watts() != 61.5 || !strings.HasPrefix(site.URL, "http://"+m.Name()) {
			t.Errorf("%s: %g W of %s", field, m.Watts(), m.Name())
		}
		m.Close()
	}
	for source, want := range map[string]string{
		site.URL + "/shelly":                                                   "must be http://HOST/PATH#FIELD",
		site.URL + "/shelly#power":                                             `no number at "power"`,
		site.URL + "/shelly#output":                                            "no number at",
		site.URL + "/redfish#PowerControl.1":                                   "no number at",
		site.URL + "/redfish#PowerControl.0.Name":                              "no number at",
		site.URL + "/none#apower":                                              "404",
		strings.Replace(site.URL, "://", "://a:secret@", 1):                    "others can read a password",
		strings.Replace(site.URL, "://", "://a:secret@", 1) + "/shelly#apower": "others can read a password",
	} {
		m, err := power.Open(power.Source(source), "/")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
		if err == nil {
			m.Close()
		}
	}
}
