// Package power reads a power meter of the whole machine: a sensor of the kernel, or a
// program that prints watts. It turns watts into joules by adding up what was drawn from
// one reading to the next.
package power

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// interval is how often a sensor is read.
	interval = time.Second
	// patience is how long a meter may be silent: then its joules are not known.
	patience = 30 * time.Second
	// most is a limit of what a machine draws, in watts: beyond it a reading is refused.
	most = 1e6
	// longest bounds a line of a program.
	longest = 4096
)

// Source says which meter there is. The zero value is none.
type Source string

// Meter is a power meter that is being read. It is safe for concurrent use.
type Meter struct {
	name  string
	close func()

	mutex  sync.Mutex
	joules float64
	watts  float64 // of the newest reading
	at     time.Time
	err    error // why it ended
}

// Open begins to read a meter:
//
//	hwmon              the sensors of the kernel that have a power input
//	hwmon:NAME         those of the chips with the name
//	command:PROGRAM …  a program that prints the machine's watts, a number a line, at least every 30 s
//	http://…#FIELD     a smart plug, or https a management controller, that answers with JSON
//
// The program is started without a shell, with its arguments split at spaces. Open
// returns when the first reading has come. Root is prefixed to the paths of the
// kernel's files.
func Open(source Source, root string) (*Meter, error) {
	kind, rest, _ := strings.Cut(string(source), ":")
	switch {
	case kind == "hwmon":
		return openSensors(root, rest)
	case kind == "command" && strings.TrimSpace(rest) != "":
		return openCommand(strings.Fields(rest))
	case kind == "http" || kind == "https":
		return openWeb(string(source))
	}
	return nil, fmt.Errorf("meter %q: must be hwmon, hwmon:NAME, command:PROGRAM with its arguments, or http://HOST/PATH#FIELD", source)
}

// Name says in a word or two which meter it is.
func (m *Meter) Name() string { return m.name }

// Watts is the newest reading.
func (m *Meter) Watts() float64 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.watts
}

// Joules is what the machine took since the meter was opened until then, which is now: who
// divides by a time asks for that time. It is an error where the meter has ended or is silent.
func (m *Meter) Joules(until time.Time) (float64, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	since := until.Sub(m.at)
	switch {
	case m.err != nil:
		return 0, m.err
	case since > patience:
		return 0, fmt.Errorf("the meter %s has been silent for %.0f s", m.name, since.Seconds())
	}
	return m.joules + m.watts*since.Seconds(), nil
}

// Close ends the reading.
func (m *Meter) Close() { m.close() }

// read takes a reading: what was drawn since the one before is their mean.
func (m *Meter) read(watts float64, at time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !m.at.IsZero() {
		m.joules += (m.watts + watts) / 2 * at.Sub(m.at).Seconds()
	}
	m.watts, m.at = watts, at
}

func (m *Meter) end(err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.err = cmp.Or(m.err, err)
}

// valid refuses what no machine draws.
func valid(watts float64) error {
	if !(watts >= 0 && watts <= most) {
		return fmt.Errorf("%g is no number of watts from 0 to %g", watts, most)
	}
	return nil
}

// sensors are files with microwatts.
type sensors []string

// openSensors finds the power inputs of the chips with the name, or of all chips.
func openSensors(root, name string) (*Meter, error) {
	chips, _ := filepath.Glob(filepath.Join(root, "/sys/class/hwmon/hwmon*")) // fails for a bad pattern only
	var found sensors
	var names []string
	for _, chip := range chips {
		text, err := os.ReadFile(filepath.Join(chip, "name"))
		called := strings.TrimSpace(string(text))
		inputs, _ := filepath.Glob(filepath.Join(chip, "power*_input"))
		averages, _ := filepath.Glob(filepath.Join(chip, "power*_average"))
		if len(inputs) == 0 { // ACPI's power meters have averages only
			inputs = averages
		}
		if err != nil || len(inputs) == 0 || name != "" && called != name {
			continue
		}
		found, names = append(found, inputs...), append(names, called)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("meter %s: no sensor in /sys/class/hwmon has a power input", strings.TrimSuffix("hwmon:"+name, ":"))
	}
	slices.Sort(names)
	return polled("hwmon "+strings.Join(slices.Compact(names), "+"), found.watts)
}

// polled is a meter that is asked for its watts once a second. One that does not answer for
// a while is silent.
func polled(name string, ask func() (float64, error)) (*Meter, error) {
	watts, err := ask()
	if err != nil {
		return nil, err
	}
	stop := make(chan struct{})
	m := &Meter{name: name, close: sync.OnceFunc(func() { close(stop) })}
	m.read(watts, time.Now())
	go func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				if watts, err := ask(); err == nil {
					m.read(watts, time.Now())
				}
			}
		}
	}()
	return m, nil
}

func (s sensors) watts() (sum float64, err error) {
	for _, path := range s {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, fmt.Errorf("read the power sensor: %w", err)
		}
		micro, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		if err != nil {
			return 0, fmt.Errorf("the power sensor %s has %q, want microwatts", path, text)
		}
		sum += micro / 1e6
	}
	return sum, valid(sum)
}

func openCommand(words []string) (*Meter, error) {
	command := exec.Command(words[0], words[1:]...) //nolint:gosec // the worker's owner names it
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the meter: %w", err)
	}
	m := &Meter{name: filepath.Base(words[0])}
	ended := make(chan struct{})
	m.close = sync.OnceFunc(func() {
		_ = command.Process.Kill() // it may have ended
		<-ended
	})
	first := make(chan error, 1)
	go func() {
		defer close(ended)
		err := m.follow(out, first)
		_ = command.Process.Kill()
		err = cmp.Or(err, command.Wait(), errors.New("it has ended"))
		m.end(fmt.Errorf("the meter %s: %w", m.name, err))
		first <- err
	}()
	select {
	case err = <-first:
	case <-time.After(patience):
		err = fmt.Errorf("it printed nothing for %v", patience)
	}
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("the meter %s: %w", m.name, err)
	}
	return m, nil
}

// follow reads a number a line, and says when the first one has come.
func (m *Meter) follow(out io.Reader, first chan<- error) error {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, longest)
	for began := false; lines.Scan(); {
		watts, err := strconv.ParseFloat(strings.TrimSpace(lines.Text()), 64)
		if err != nil || math.IsNaN(watts) {
			return fmt.Errorf("it printed %q: want watts, a number a line", lines.Text())
		}
		if err := valid(watts); err != nil {
			return err
		}
		m.read(watts, time.Now())
		if !began {
			began = true
			first <- nil
		}
	}
	return lines.Err()
}
