// Package goptunatandem runs objectives that were written for goptuna on a Tandem
// server: its studies propose the trials, stop the bad ones early, and show them on
// their pages. Any number of processes may work on one.
//
//	bridge, err := goptunatandem.New(ctx, goptunatandem.Options{}) // TANDEM_SERVER, TANDEM_TOKEN
//	defer bridge.Close()
//	study, err := goptuna.CreateStudy("name", bridge.StudyOptions()...)
//	err = study.Optimize(objective, 100)
//
// A study needs its space before it begins, and an objective says what it wants while
// it runs. So the first trials, at most ten, look at the space at random. Then the study
// is created on the server with what they measured, and proposes the rest.
package goptunatandem

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"sync"

	"github.com/c-bata/goptuna"
	tandem "github.com/tandem-tune/tandem/clients/go"
)

// noBound is a number of trials: goptuna's Optimize knows how many there are to be, and
// tells nobody.
const noBound = 1_000_000

// Options are what a Bridge is made from.
type Options struct {
	// Client says which server; nil: the variables TANDEM_SERVER and TANDEM_TOKEN do.
	Client *tandem.Client
	// Pruner is what the server's early stopping is to do as: a pruner of goptuna's
	// packages medianstopping or successivehalving. Nil: the median rule.
	Pruner goptuna.Pruner
	// Search is laid over the study's search, with the names of a study file; nil takes a
	// field away, so that {"early_stopping": nil} stops nobody. Without a method it is a
	// Gaussian process.
	Search map[string]any
}

// Bridge is the storage, the samplers and the pruner of one study of goptuna's.
type Bridge struct {
	ctx    context.Context
	client *tandem.Client
	rule   rule
	search map[string]any
	draws  *goptuna.RandomSampler
	// turn has room for the one who asks, records or creates, so that nobody asks for
	// what another one has enqueued to record it.
	turn chan struct{}

	mu        sync.Mutex // never held over a call
	name      string
	metric    string // the objective, on the server
	direction goptuna.StudyDirection
	shared    bool // others may have created the study: StudyOptionLoadIfExists
	study     *tandem.Study
	known     map[string]bool // the parameters on the server
	records   []*record
	finished  []tandem.TrialRecord // the first trials on the server, as far as all have ended
	looked    exploration
	strange   map[string]bool
	distinct  map[string]any // distributions, as asked for last
}

// New makes a bridge for one study; end it with Close. When the context ends, so do the
// calls to the server.
func New(ctx context.Context, options Options) (*Bridge, error) {
	rule, err := ruleOf(options.Pruner)
	if err != nil {
		return nil, err
	}
	client := options.Client
	if client == nil {
		if client, err = tandem.Connect(tandem.Options{}); err != nil {
			return nil, err
		}
	}
	search := map[string]any{"method": "gp", "promotion": "none"}
	maps.Copy(search, options.Search)
	return &Bridge{
		ctx: ctx, client: client, rule: rule, search: search, draws: goptuna.NewRandomSampler(), turn: make(chan struct{}, 1),
		metric: "value", strange: map[string]bool{}, distinct: map[string]any{},
	}, nil
}

// StudyOptions are what goptuna.CreateStudy and LoadStudy are to be given, with further
// options of the study behind them. With StudyOptionLoadIfExists a study of that name
// which the server has is gone on with; without it that is an error.
func (b *Bridge) StudyOptions(more ...goptuna.StudyOption) []goptuna.StudyOption {
	return append([]goptuna.StudyOption{
		goptuna.StudyOptionStorage(&storage{Bridge: b, InMemoryStorage: goptuna.NewInMemoryStorage()}),
		goptuna.StudyOptionSampler(b),
		goptuna.StudyOptionRelativeSampler(b),
		goptuna.StudyOptionPruner(b),
		// An empty space has goptuna call the relative sampler before each trial, and take
		// no value from it.
		goptuna.StudyOptionDefineSearchSpace(map[string]any{}),
	}, more...)
}

// Study is the study on the server; nil while the first trials look at the space.
func (b *Bridge) Study() *tandem.Study {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.study
}

// Close leaves the study: with the last process that works on it, it pauses.
func (b *Bridge) Close() {
	if study := b.Study(); study != nil {
		study.Close()
	}
}

// take waits for the turn; the returned function gives it back.
func (b *Bridge) take(ctx context.Context) (func(), error) {
	select {
	case b.turn <- struct{}{}:
		return func() { <-b.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// look finds the study on the server, if there is one to go on with. Who calls it has
// the turn.
func (b *Bridge) look(ctx context.Context) error {
	b.mu.Lock()
	name, wanted := b.name, b.shared && b.study == nil
	b.mu.Unlock()
	if !wanted {
		return nil
	}
	found, err := b.client.Study(ctx, serverStudy(name))
	if tandem.IsCode(err, tandem.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.adopt(ctx, found)
}

// adopt goes on with a study of the server's, and brings it what was measured here.
func (b *Bridge) adopt(ctx context.Context, found *tandem.Study) error {
	status, err := found.Status(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	direction := b.direction
	b.mu.Unlock()
	objectives := status.Definition.Objectives
	switch {
	case len(objectives) != 1 || objectives[0].Metric == "":
		return fmt.Errorf("goptunatandem: study %s of the server has a formula or several objectives, and an objective of goptuna's returns one value: choose another name for goptuna's study", found.Name)
	case direction != "" && objectives[0].Direction != string(direction):
		return fmt.Errorf("goptunatandem: study %s of the server is to %s, and goptuna's to %s: give it that direction, or another name", found.Name, objectives[0].Direction, direction)
	case status.Rungs > 1 && status.Definition.Search.Promotion != "none":
		return fmt.Errorf("goptunatandem: study %s of the server takes trials up a ladder of budgets, and an objective of goptuna's trains each in one go: give it promotion: none, or goptuna's study another name", found.Name)
	}
	known := map[string]bool{}
	for _, parameter := range status.Definition.Space.Parameters {
		known[parameter.Name] = true
	}
	b.mu.Lock()
	b.study, b.known, b.metric, b.direction = found, known, objectives[0].Metric, goptuna.StudyDirection(objectives[0].Direction)
	var before []*record
	for _, one := range b.records {
		if one.trial == nil && !one.onServer && one.frozen.State == goptuna.TrialStateComplete {
			before = append(before, one)
		}
	}
	b.mu.Unlock()
	for _, one := range before {
		if err := b.record(one); err != nil {
			return err
		}
	}
	return nil
}

// create makes the study on the server of what was measured, with the turn.
func (b *Bridge) create(ctx context.Context) error {
	b.mu.Lock()
	var trials []asked
	steps := 1
	var longest []int
	for _, one := range b.records {
		if one.frozen.State == goptuna.TrialStateComplete {
			trials = append(trials, one.asked())
			if own := one.steps(); len(own) > len(longest) {
				longest, steps = own, len(own)
			}
		}
	}
	name, direction, shared := b.name, b.direction, b.shared
	b.mu.Unlock()
	definition, err := b.definition(name, direction, longest, shapeOf(trials))
	if err != nil {
		return err
	}
	definition.Epochs = steps
	created, err := b.client.CreateStudy(ctx, definition)
	if tandem.IsCode(err, tandem.Conflict) && shared { // another process was faster
		created, err = b.client.Study(ctx, definition.Name)
	}
	if err != nil {
		return err
	}
	return b.adopt(ctx, created)
}

func (b *Bridge) definition(name string, direction goptuna.StudyDirection, steps []int, space shape) (tandem.Definition, error) {
	parameters, err := space.parameters()
	if err != nil {
		return tandem.Definition{}, err
	}
	search := b.rule.search(steps)
	maps.Copy(search, b.search)
	maps.DeleteFunc(search, func(_ string, value any) bool { return value == nil })
	return tandem.Definition{
		Name: serverStudy(name), Objectives: []tandem.Objective{{Metric: b.metric, Direction: string(direction)}}, Space: parameters, Search: search, Trials: noBound,
		More: map[string]any{
			"description": "Trials are run by a program that uses goptuna, through goptunatandem.",
			"budget":      b.rule.budget(steps),
			"stop":        map[string]int{"trials": noBound, "failures": 0},
			"retry":       map[string]int{"failures": 0},
		},
	}, nil
}

// record brings the server a trial that it did not propose. One that does not fit the
// space is left out. What it asks for meanwhile is run later: so the context is the
// bridge's.
func (b *Bridge) record(one *record) error {
	b.mu.Lock()
	study, result := b.study, tandem.Result{Params: b.configuration(one), Metrics: b.besides(one, nil), Took: max(one.frozen.DatetimeComplete.Sub(one.frozen.DatetimeStart), 0)}
	for _, step := range one.steps() {
		result.Curve = append(result.Curve, one.frozen.IntermediateValues[step])
	}
	b.mu.Unlock()
	number, err := study.Record(b.ctx, result)
	if tandem.IsCode(err, tandem.Invalid) {
		b.mu.Lock()
		one.left = err
		b.mu.Unlock()
		return nil
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	one.onServer, one.frozen.Number = true, number
	b.mu.Unlock()
	return nil
}

var notInStudies = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// serverStudy is a study's name as the server takes it.
func serverStudy(name string) string {
	found := notInStudies.ReplaceAllString(name, "-")
	if found == "" || !regexp.MustCompile(`^[A-Za-z0-9]`).MatchString(found) {
		found = "s" + found
	}
	return found[:min(len(found), 128)]
}

// Import makes a study of the server of one that goptuna has in a storage, such as that
// of its package rdb.v2: completed trials become its own, with their intermediate values
// as learning curves; others are left out. The study has goptuna's name, and goes on
// with a bridge and StudyOptionLoadIfExists.
func Import(ctx context.Context, from goptuna.Storage, name string, options Options) (*tandem.Study, error) {
	id, err := from.GetStudyIDFromName(name)
	if err != nil {
		return nil, fmt.Errorf("goptunatandem: the storage has no study %q: %w", name, err)
	}
	direction, err := from.GetStudyDirection(id)
	if err != nil {
		return nil, fmt.Errorf("goptunatandem: study %q: %w", name, err)
	}
	trials, err := from.GetAllTrials(id)
	if err != nil {
		return nil, fmt.Errorf("goptunatandem: study %q: %w", name, err)
	}
	b, err := New(ctx, options)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	b.name, b.direction = name, direction
	for _, one := range trials {
		if one.State == goptuna.TrialStateComplete && len(one.InternalParams) > 0 {
			b.records = append(b.records, &record{frozen: one})
		}
	}
	if len(b.records) == 0 {
		return nil, fmt.Errorf("goptunatandem: study %q has no completed trial with parameters: there is nothing to import", name)
	}
	if err := b.create(ctx); err != nil {
		return nil, err
	}
	var left []error
	for _, one := range b.records {
		left = append(left, one.left)
	}
	return b.study, errors.Join(left...)
}
