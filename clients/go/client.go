// Package tandem tunes Go programs with a Tandem server.
//
// A program runs a study's trials itself, in a few lines:
//
//	client, err := tandem.Connect(tandem.Options{}) // TANDEM_SERVER, TANDEM_TOKEN
//	study, err := client.CreateStudy(ctx, tandem.Definition{ ... })
//	err = study.Optimize(ctx, func(ctx context.Context, trial *tandem.Trial) (float64, error) {
//		x := trial.Float("x")
//		return x * x, nil
//	}, tandem.Trials(50))
//
// Any number of processes may do that with one study. A program that a worker
// starts asks for its trial with FromEnvironment instead.
//
// The package has no dependencies. Its package goptunatandem runs objectives that
// were written for goptuna.
package tandem

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// DefaultServer is the address of a server that nothing names.
const DefaultServer = "http://127.0.0.1:7171"

const defaultPatience = 60 * time.Second

// Options say which server to talk to, and how.
type Options struct {
	// Server is its address, such as http://127.0.0.1:7171. Empty: the variable
	// TANDEM_SERVER, or DefaultServer.
	Server string
	// Token is sent with every call. Empty: the variable TANDEM_TOKEN.
	Token string
	// CA is a PEM file with the authority that signed the server's certificate:
	// nobody else is trusted then. Empty: the variable TANDEM_CA, or whom the
	// machine trusts.
	CA string
	// Insecure lets the token go to another machine without TLS.
	Insecure bool
	// Patience is how long a call is tried again while the server cannot be reached
	// or asks to come back later. 0: a minute; negative: not at all.
	Patience time.Duration
	// HTTPClient sends the requests; nil: one of our own. It is not changed.
	HTTPClient *http.Client
}

// Client talks to one server. It is safe for concurrent use.
type Client struct{ to *transport }

// Connect returns a client. It does not call the server yet. The error says what is
// wrong with an option, or with the variable that stands in for it.
func Connect(options Options) (*Client, error) {
	server := first(options.Server, os.Getenv("TANDEM_SERVER"), DefaultServer)
	base, err := url.Parse(server)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || strings.Trim(base.Path, "/") != "" || base.RawQuery != "" || base.User != nil {
		return nil, fmt.Errorf("tandem: Server (or TANDEM_SERVER) is http://HOST:PORT or https://HOST:PORT, not %q", server)
	}
	token := first(options.Token, os.Getenv("TANDEM_TOKEN"))
	if token != "" && base.Scheme == "http" && !loopback(base.Hostname()) && !options.Insecure {
		return nil, fmt.Errorf("tandem: the token would cross the network in plain text to %s: use an https address, or set Options.Insecure", base.Host)
	}
	sender, err := newSender(options.HTTPClient, first(options.CA, os.Getenv("TANDEM_CA")))
	if err != nil {
		return nil, err
	}
	patience := options.Patience
	if patience == 0 {
		patience = defaultPatience
	}
	base.Path = ""
	return &Client{&transport{base: base.String(), prefix: "/api/v1", token: token, http: sender, patience: patience}}, nil
}

func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

// Server is the address of the server.
func (c *Client) Server() string { return c.to.base }

// CreateStudy creates a study. A definition with faults is an *Error with the code
// Invalid that names every one, and a name that is taken one with the code Conflict.
func (c *Client) CreateStudy(ctx context.Context, definition Definition) (*Study, error) {
	return c.create(ctx, call{doing: "create the study", path: "/studies", document: definition})
}

// OpenOrCreateStudy returns the study of the definition's name as it is, whatever its
// definition, and creates it if there is none. So several processes share a study.
func (c *Client) OpenOrCreateStudy(ctx context.Context, definition Definition) (*Study, error) {
	created, err := c.CreateStudy(ctx, definition)
	if IsCode(err, Conflict) {
		return c.Study(ctx, definition.Name)
	}
	return created, err
}

// CreateStudyFile creates a study from a study file in YAML or, with the ending
// .json, in JSON.
func (c *Client) CreateStudyFile(ctx context.Context, path string) (*Study, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tandem: read the study file: %w", err)
	}
	kind := "application/yaml"
	if strings.HasSuffix(path, ".json") {
		kind = "application/json"
	}
	return c.create(ctx, call{doing: "create the study", path: "/studies", body: content, kind: kind})
}

func (c *Client) create(ctx context.Context, one call) (*Study, error) {
	one.method = http.MethodPost
	var view studyView
	if err := c.to.send(ctx, one, &view); err != nil {
		return nil, err
	}
	return &Study{ID: view.ID, Name: view.Name, client: c}, nil
}

// Study returns the study with the name or the id. One that does not exist, or is
// another user's, is an *Error with the code NotFound.
func (c *Client) Study(ctx context.Context, name string) (*Study, error) {
	var view studyView
	if err := c.to.send(ctx, call{doing: "open the study", path: "/studies/" + url.PathEscape(name)}, &view); err != nil {
		return nil, err
	}
	return &Study{ID: view.ID, Name: view.Name, client: c}, nil
}

// Definition is what a study searches. The server checks it; its study file has the
// same fields, and more.
type Definition struct {
	// Name is unique on the server.
	Name string
	// Objectives are what is improved: see Minimize and Maximize.
	Objectives []Objective
	// Space are the parameters. A parameter of a condition stands before those that
	// depend on it.
	Space []Parameter
	// Epochs is how long the longest trial trains; 0: the objective is measured once.
	// Above 1, trials begin with few epochs and the better ones go on, unless Search
	// says otherwise.
	Epochs int
	// Trials is after how many trials the study ends; 0: it has no such bound.
	Trials int
	// Search is how configurations are chosen, with the names of a study file, such
	// as {"method": "gp"}. Nil: the server's default.
	Search map[string]any
	// More are further fields of a study file by name, such as "constraints". They
	// replace what the fields above say.
	More map[string]any
}

// MarshalJSON writes the study file.
func (d Definition) MarshalJSON() ([]byte, error) {
	file := map[string]any{"name": d.Name, "objective": d.Objectives, "space": space(d.Space), "budget": map[string]any{"epochs": max(d.Epochs, 1)}}
	if d.Epochs > 1 {
		file["budget"] = map[string]any{"policy": "epochs", "epochs": map[string]int{"min": 1, "max": d.Epochs}}
	}
	if d.Trials > 0 {
		file["stop"] = map[string]int{"trials": d.Trials}
	}
	if d.Search != nil {
		file["search"] = d.Search
	}
	for name, value := range d.More {
		file[name] = value
	}
	return json.Marshal(file)
}

// Objective is a metric and its direction.
type Objective struct {
	Metric    string `json:"metric"`
	Direction string `json:"direction"`
}

// Minimize has the study make a metric small.
func Minimize(metric string) []Objective { return []Objective{{metric, "minimize"}} }

// Maximize has the study make a metric large.
func Maximize(metric string) []Objective { return []Objective{{metric, "maximize"}} }

// Parameter is one dimension of a space: made by Float, LogFloat, Int, Categorical or
// Ordinal, and changed by When and Step.
type Parameter struct {
	// Name has letters, digits, '_', '.' and '-'.
	Name string
	// Fields are those of a study file.
	Fields map[string]any
}

// Float is a number in [low, high].
func Float(name string, low, high float64) Parameter {
	return Parameter{name, map[string]any{"type": "float", "low": low, "high": high}}
}

// LogFloat is a number in [low, high] on a logarithmic scale; low is above 0.
func LogFloat(name string, low, high float64) Parameter {
	return Float(name, low, high).with("log", true)
}

// Int is a whole number from low to high.
func Int(name string, low, high int) Parameter {
	return Parameter{name, map[string]any{"type": "int", "low": low, "high": high}}
}

// Categorical is one of the values, which have no order: texts, numbers or booleans.
func Categorical[V any](name string, values ...V) Parameter {
	return Parameter{name, map[string]any{"type": "categorical", "values": values}}
}

// Ordinal is one of the values, in their order.
func Ordinal[V any](name string, values ...V) Parameter {
	return Parameter{name, map[string]any{"type": "ordinal", "values": values}}
}

// Step leaves of a range only low, low+step and so on.
func (p Parameter) Step(step float64) Parameter { return p.with("step", step) }

// Expect says where the best value is expected, and how sure that is: low, medium or high.
func (p Parameter) Expect(value any, sure string) Parameter {
	return p.with("expect", map[string]any{"value": value, "sure": sure})
}

// When gives the parameter only to trials in which the other one, which stands before
// it in the space, has one of the values.
func (p Parameter) When(other string, values ...any) Parameter {
	conditions := map[string]any{other: values}
	if before, has := p.Fields["when"].(map[string]any); has {
		for name, more := range before {
			conditions[name] = more
		}
	}
	return p.with("when", conditions)
}

func (p Parameter) with(field string, value any) Parameter {
	fields := map[string]any{field: value}
	for name, old := range p.Fields {
		if name != field {
			fields[name] = old
		}
	}
	return Parameter{p.Name, fields}
}

// space keeps the order of its parameters, which a map would lose.
type space []Parameter

func (s space) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, one := range s {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := json.Marshal(one.Name)
		if err != nil {
			return nil, err
		}
		fields, err := json.Marshal(one.Fields)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", one.Name, err)
		}
		text = append(append(append(text, name...), ':'), fields...)
	}
	return append(text, '}'), nil
}
