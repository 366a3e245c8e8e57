// Package service drives one service through its trials: it starts it, waits until it
// is ready, puts load on it, and reports what each window measured. To its worker it is
// a script like any other, and runs in the same sandbox.
package service

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
)

// driver is a service and the trial that it runs for.
type driver struct {
	service     definition.Service
	environment map[string]string
	params      space.Configuration
	// running is the service; nil before it was started. With what it was started and
	// last changed is in as.
	running   *program
	as        space.Configuration
	port      int
	directory string
}

// Process is the driver of the service that the argument describes. It returns its exit
// code.
func Process(argument string) int {
	runtime.LockOSThread() // programs end with the thread that started them
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	d := &driver{environment: map[string]string{}}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		d.environment[name] = value
	}
	err := json.Unmarshal([]byte(argument), &d.service)
	for next := err == nil; next; {
		next, err = d.trial(ctx)
	}
	if err != nil && d.running != nil {
		fmt.Fprintf(os.Stderr, "the service's last lines:\n%s\n", d.running.output.last(lastLines))
	}
	d.stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tandem:", err) // people see the last line first
		return 1
	}
	return 0
}

// trial measures the windows of one trial, and reports whether there is another one.
func (d *driver) trial(ctx context.Context) (bool, error) {
	d.params = nil // the running service keeps those of the trial before
	if err := json.Unmarshal([]byte(d.environment["TANDEM_PARAMS"]), &d.params); err != nil {
		return false, fmt.Errorf("TANDEM_PARAMS: %w", err)
	}
	first, err := strconv.Atoi(d.environment["TANDEM_FIRST_EPOCH"])
	if err != nil {
		return false, fmt.Errorf("TANDEM_FIRST_EPOCH: %w", err)
	}
	last, err := strconv.Atoi(d.environment["TANDEM_EPOCHS"])
	if err != nil {
		return false, fmt.Errorf("TANDEM_EPOCHS: %w", err)
	}
	known, err := restored(d.environment["TANDEM_CHECKPOINT_DIR"])
	if err != nil {
		return false, err
	}
	if err := d.settle(ctx); err != nil {
		return false, err
	}
	if err := d.tell(ctx, "/v1/begin", map[string]any{"epoch": first}, &struct{}{}); err != nil {
		return false, err
	}
	answer := protocol.Directive{Action: protocol.Continue}
	for epoch := first; epoch <= last && answer.Action == protocol.Continue; epoch++ {
		measured, err := d.window(ctx)
		if err != nil {
			return false, err
		}
		known.add(measured)
		if err := d.tell(ctx, "/v1/report", map[string]any{"epoch": epoch, "metrics": known.report()}, &answer); err != nil {
			return false, err
		}
		if answer.Action == protocol.Stop {
			break
		}
		if err := known.keep(d.environment["TANDEM_CHECKPOINT_DIR"]); err != nil {
			return false, err
		}
		if err := d.tell(ctx, "/v1/checkpoint", map[string]any{"epoch": epoch}, &struct{}{}); err != nil {
			return false, err
		}
	}
	if len(d.service.Live) == 0 || answer.Action != protocol.Finish {
		return false, nil
	}
	var next struct {
		Next        bool              `json:"next"`
		Environment map[string]string `json:"environment"`
	}
	err = d.tell(ctx, "/v1/next", struct{}{}, &next)
	maps.Copy(d.environment, next.Environment)
	return next.Next, err
}

func (d *driver) tell(ctx context.Context, path string, body, answer any) error {
	return call(ctx, d.environment["TANDEM_SOCKET"], path, body, answer)
}

// settle has the service run with the trial's parameters, and warmed up.
func (d *driver) settle(ctx context.Context) error {
	// The same settings once more mean another start: its luck is part of the spread.
	if d.running != nil && (d.fixed(d.as) != d.fixed(d.params) || d.as.Key() == d.params.Key()) {
		d.stop()
	}
	if d.running == nil {
		if err := d.start(ctx); err != nil {
			return err
		}
	} else if err := d.write(); err != nil {
		return err
	}
	if len(d.service.Apply) > 0 {
		if _, err := run(ctx, "service.apply", d.filled(d.service.Apply), d.variables()); err != nil {
			return d.alive(err)
		}
	}
	d.as = d.params
	for range d.service.WarmUp {
		if _, err := d.window(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fixed are the parameters that need a new start.
func (d *driver) fixed(of space.Configuration) string {
	rest := maps.Clone(of)
	for _, name := range d.service.Live {
		delete(rest, name)
	}
	return rest.Key()
}

// start starts the service and waits until it is ready.
func (d *driver) start(ctx context.Context) (err error) {
	if d.directory, err = os.MkdirTemp("", "service-"); err != nil {
		return fmt.Errorf("make the service's folder: %w", err)
	}
	if d.port, err = freePort(); err != nil {
		return err
	}
	if err = d.write(); err != nil {
		return err
	}
	if d.running, err = start("the service", d.filled(d.service.Start), d.variables()); err != nil {
		return err
	}
	patience := time.Duration(d.service.Ready.Seconds * float64(time.Second))
	deadline := time.Now().Add(patience)
	for {
		attempt, cancel := context.WithDeadline(ctx, deadline)
		err := d.ready(attempt)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case d.ended():
			return d.running.failure()
		case err == nil:
			return nil
		case !time.Now().Before(deadline):
			return fmt.Errorf("the service was not ready after %v (service.ready): %w; it wrote last: %s", patience, err, d.running.said())
		}
		select {
		case <-ctx.Done():
		case <-d.running.ended:
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// freePort is a port that nobody listens at now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close() //nolint:errcheck // it was only a question
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// ready asks once.
func (d *driver) ready(ctx context.Context) error {
	how := d.service.Ready
	if len(how.Command) > 0 { // it may fill the service
		_, err := run(ctx, "service.ready", d.filled(how.Command), d.variables())
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if how.TCP != "" {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.fill(how.TCP))
		if err != nil {
			return err
		}
		return connection.Close()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.fill(how.HTTP), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was not read
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s answers %s", request.URL, response.Status)
	}
	return nil
}

func (d *driver) ended() bool {
	select {
	case <-d.running.ended:
		return true
	default:
		return false
	}
}

// alive puts first that the service has ended, where it has.
func (d *driver) alive(err error) error {
	if d.ended() {
		return fmt.Errorf("%w; %w", d.running.failure(), err)
	}
	return err
}

// window puts load on the service once.
func (d *driver) window(ctx context.Context) (map[string]float64, error) {
	load, err := run(ctx, "service.load", d.filled(d.service.Load), d.variables())
	switch {
	case err != nil:
		return nil, d.alive(err)
	case d.ended():
		return nil, d.running.failure()
	}
	return read(&load.printed, d.service.Metrics)
}

// stop ends the service and removes its folder.
func (d *driver) stop() {
	if d.running != nil {
		named := map[string]syscall.Signal{"INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "TERM": syscall.SIGTERM}
		d.running.stop(named[d.service.Stop.Signal], time.Duration(d.service.Stop.Seconds*float64(time.Second)))
		d.running = nil
	}
	if d.directory != "" {
		_ = os.RemoveAll(d.directory) // the worker removes what is left
		d.directory = ""
	}
}

// write writes the files of the service.
func (d *driver) write() error {
	for name, text := range d.service.Files {
		path := filepath.Join(d.directory, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(d.fill(text)), 0o600)
		}
		if err != nil {
			return fmt.Errorf("service.files: %w", err)
		}
	}
	return nil
}

// fill puts parameters, port and folder in place of their names.
func (d *driver) fill(text string) string {
	return definition.Fill(text, func(name string) string {
		switch name {
		case definition.ServicePort:
			return strconv.Itoa(d.port)
		case definition.ServiceDirectory:
			return d.directory
		}
		return d.params[name].String()
	})
}

func (d *driver) filled(argv []string) []string {
	done := make([]string, 0, len(argv))
	for _, argument := range argv {
		done = append(done, d.fill(argument))
	}
	return done
}

// variables are the environment of the service and what belongs to it.
func (d *driver) variables() []string {
	all := maps.Clone(d.environment)
	for name, text := range d.service.Environment {
		all[name] = d.fill(text)
	}
	list := make([]string, 0, len(all))
	for name, value := range all {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}
