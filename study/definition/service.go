package definition

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// Service is a program that is tuned while it serves. An epoch is one measured
// window: one run of Load.
type Service struct {
	// Start is the argv of the service, which stays in the foreground.
	Start []string `json:"start"`
	// Ready says when it takes load.
	Ready Ready `json:"ready"`
	// Load is the argv that puts load on it for one window, and prints what it measured.
	Load []string `json:"load"`
	// Metrics are what is read from the output of Load: patterns with one group. None:
	// the numbers of its last line, a JSON object.
	Metrics map[string]string `json:"metrics,omitempty"`
	// WarmUp is how many runs of Load do not count after the service was started or changed.
	WarmUp int `json:"warm_up"`
	// Live are the parameters that Apply changes while the service runs. Any other one
	// needs a new start.
	Live  []string `json:"live,omitempty"`
	Apply []string `json:"apply,omitempty"`
	// Environment and Files, by their path in {directory}, are templates too.
	Environment map[string]string `json:"environment,omitempty"`
	Files       map[string]string `json:"files,omitempty"`
	// Stop is how it is ended.
	Stop StopSignal `json:"stop"`
}

// Ready is one of three ways to see that a service takes load, and how long that may
// take at most.
type Ready struct {
	TCP     string   `json:"tcp,omitempty"`
	HTTP    string   `json:"http,omitempty"`
	Command []string `json:"command,omitempty"`
	Seconds float64  `json:"seconds"`
}

// StopSignal is what a service is sent, and how long it may then take.
type StopSignal struct {
	Signal  string  `json:"signal"`
	Seconds float64 `json:"seconds"`
}

// ServiceSubcommand is what this program is started with, by a worker, to be a
// service's driver.
const ServiceSubcommand = "service-trial"

// Command is the argv of the service's driver.
func (s Service) Command() ([]string, error) {
	content, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the service for its driver: %w", err)
	}
	return []string{"tandem", ServiceSubcommand, string(content)}, nil
}

// Programs are the words of the study's own command line, or of a service and its load.
func (d Definition) Programs() []string {
	if d.Service == nil {
		return d.Command
	}
	return slices.Concat(d.Service.Start, d.Service.Load, d.Service.Apply)
}

// IsService reports whether the argv is that of a service's driver.
func IsService(command []string) bool {
	return len(command) == 3 && command[0] == "tandem" && command[1] == ServiceSubcommand
}

// Names of templates that are no parameters: a free port of this machine, and an empty
// folder, for each start of the service.
const (
	ServicePort      = "port"
	ServiceDirectory = "directory"
)

var template = regexp.MustCompile(`\{\{[A-Za-z_][A-Za-z0-9_.-]*\}\}|\{[A-Za-z_][A-Za-z0-9_.-]*\}`)

// Fill puts values in place of {name}; {{name}} stands for {name} itself.
func Fill(text string, value func(name string) string) string {
	return template.ReplaceAllStringFunc(text, func(found string) string {
		inner := found[1 : len(found)-1]
		if inner[0] == '{' {
			return inner
		}
		return value(inner)
	})
}
