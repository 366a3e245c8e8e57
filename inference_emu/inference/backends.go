package inference

import (
	"context"
	"fmt"
	"slices"
	"strings"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/backend"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/trial"
)

const (
	// backendEntry is the kind of the pool's entries that hold backends.
	backendEntry = "backend"
	// mostBackends bounds how many are compared.
	mostBackends = 64
	// mostJudged is about how many choices of a backend for a study's model are made each time
	// that it is looked what boards shall measure. Twice as many are kept at hand.
	mostJudged = maxDeployed / 2
)

// Places keeps backends, the places to deploy at a price, and chooses of them by what the
// service knows. It is safe for concurrent use.
type Places struct {
	service *Service
	gate    gate.Gate // lets one change of backends be made at a time
}

// NewPlaces returns the use cases of backends, and has the service's boards measure for them.
func NewPlaces(service *Service) *Places {
	p := &Places{service, gate.New()}
	service.also = p.want
	return p
}

// SetBackend adds a backend, or replaces the one of the name.
func (p *Places) SetBackend(ctx context.Context, name string, offer backend.BackendOffer) (backend.Backend, error) {
	made := backend.Backend{Name: name, BackendOffer: offer}
	if err := backend.Fault(name); err != nil {
		return made, err
	}
	if faults := p.service.offerFaults(offer); len(faults) > 0 {
		return made, problem.WithFields("the backend is not valid", faults)
	}
	if err := p.gate.Enter(ctx); err != nil {
		return made, err
	}
	defer p.gate.Leave()
	all, err := p.Backends(ctx)
	if err != nil {
		return made, err
	}
	if others := slices.DeleteFunc(all, func(one backend.Backend) bool { return one.Name == name }); len(others) >= mostBackends {
		return made, problem.New(problem.Exhausted, "there are %d backends, the most there may be: remove one first", mostBackends)
	}
	_, err = p.service.options.Apply(ctx, []journal.PoolEntry{journal.Entry(backendEntry, name, made)}, &made)
	made.Seen = p.service.seen(made.Device)
	p.changed()
	return made, err
}

// offerFaults says what is wrong with a backend of a device that is known; another one's
// resources are judged when its board is there.
func (s *Service) offerFaults(offer backend.BackendOffer) []problem.Field {
	if faults := deviceFaults(offer.Device); len(faults) > 0 {
		return faults
	}
	own, known := device.Device{}, false
	if site, here := s.siteOf(offer.Device); here {
		found, err := device.Machine(site).Device()
		own, known = found, err == nil
	} else if devices, err := catalogue(); err == nil {
		own, err = device.Find(devices, offer.Device)
		known = err == nil
	}
	var faults []problem.Field
	if known {
		if has := own.Clusters[0].Cores.Value; offer.Cores > has {
			faults = append(faults, problem.Field{Path: "cores", Value: offer.Cores, Message: fmt.Sprintf("must be at most %d: %s has no more", has, offer.Device)})
		}
		if has := int(own.Memory.Bytes.Value >> 20); offer.MemoryMiB > has {
			faults = append(faults, problem.Field{Path: "memory_mib", Value: offer.MemoryMiB, Message: fmt.Sprintf("must be at most %d: %s has no more", has, offer.Device)})
		}
	}
	return faults
}

// RemoveBackend removes the backend of the name. What was measured there stays.
func (p *Places) RemoveBackend(ctx context.Context, name string) error {
	if err := p.gate.Enter(ctx); err != nil {
		return err
	}
	defer p.gate.Leave()
	all, err := p.Backends(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(one backend.Backend) bool { return one.Name == name }) {
		return problem.New(problem.NotFound, "there is no backend %q", name)
	}
	_, err = p.service.options.Apply(ctx, []journal.PoolEntry{{Kind: backendEntry, Name: name}}, new(struct{}))
	p.changed()
	return err
}

// changed has boards looked at that had nothing to do.
func (p *Places) changed() {
	p.service.mutex.Lock()
	defer p.service.mutex.Unlock()
	p.service.changes++
}

// Backends are those that there are, by name.
func (p *Places) Backends(ctx context.Context) ([]backend.Backend, error) {
	entries, err := p.service.options.Entries(ctx, backendEntry)
	if err != nil {
		return nil, err
	}
	var list []backend.Backend
	for _, one := range entries {
		if err := journal.Decode(one, func(stored backend.Backend) { list = append(list, stored) }); err != nil {
			return nil, problem.New(problem.Internal, "the backend %s cannot be read: %w", one.Name, err)
		}
	}
	for i := range list {
		list[i].Seen = p.service.seen(list[i].Device)
	}
	return list, nil
}

// ChooseBackend says on which backend the trial's model is served best, by the priority or,
// where that is empty, by the study's. Without a number it is the recommended trial's.
func (p *Places) ChooseBackend(ctx context.Context, ref string, number *int, priority string) (backend.BackendChoice, error) {
	now, err := p.service.options.Look(ctx, ref)
	if err != nil {
		return backend.BackendChoice{}, err
	}
	def := now.Study.Definition
	if number == nil {
		number = ranking.LeaderOf(now)
	}
	switch {
	case def.Inference == nil:
		return backend.BackendChoice{}, problem.New(problem.NotFound, "study %s has no inference section: write one with the devices (docs/edge.md)", def.Name)
	case number == nil:
		return backend.BackendChoice{}, problem.New(problem.NotFound, "study %s has no measured trial yet: a backend is chosen for its recommended model", def.Name)
	}
	t, err := now.Trial(*number)
	if err != nil {
		return backend.BackendChoice{}, err
	}
	if t.Inference == nil {
		return backend.BackendChoice{}, problem.New(problem.NotFound, "trial %d of study %s has no model: its script has to call trial.save_model", *number, def.Name)
	}
	weights, err := priorityOf(def, priority)
	if err != nil {
		return backend.BackendChoice{}, err
	}
	return p.choice(ctx, def, t, weights)
}

// priorityOf are the weights that are asked for, or else the study's: of the one that is best
// in energy those of energy, else the price.
func priorityOf(def definition.Definition, asked string) (backend.Priority, error) {
	switch {
	case asked != "":
		return backend.ParsePriority(asked)
	case def.Inference.Objective.Metric == tuning.Energy:
		return backend.Priority{backend.ByEnergy: 1}, nil
	}
	return backend.Priority{backend.ByCost: 1}, nil
}

// choice judges all backends for the trial's model.
func (p *Places) choice(ctx context.Context, def definition.Definition, t trial.Trial, priority backend.Priority) (backend.BackendChoice, error) {
	def.Inference = best(*def.Inference, priority)
	a, err := p.service.store.Architecture(ctx, t.Inference.Architecture)
	if err != nil {
		return backend.BackendChoice{}, err
	}
	settings, err := def.Inference.Settings()
	if err != nil {
		return backend.BackendChoice{}, err
	}
	variants, err := p.service.variantsOf(ctx, t)
	if err != nil {
		return backend.BackendChoice{}, err
	}
	model := served{a, variants, def, settings.Load}
	all, err := p.Backends(ctx)
	if err != nil {
		return backend.BackendChoice{}, err
	}
	options := []backend.BackendOption{}
	for _, one := range all {
		option, err := p.judged(ctx, one, model)
		if err != nil {
			return backend.BackendChoice{}, err
		}
		options = append(options, option)
	}
	answer := backend.Choose(options, priority)
	answer.Study, answer.Trial, answer.Architecture = def.Name, t.Number, a.Key
	return answer, nil
}

// served is a model, in the precisions in which it is compared, and how it is to be served.
type served struct {
	emu.Architecture
	variants []deployment.Variant
	def      definition.Definition
	load     *deployment.Load
}

// judged is what is known of the model on a backend.
func (p *Places) judged(ctx context.Context, one backend.Backend, model served) (backend.BackendOption, error) {
	if faults := p.service.offerFaults(one.BackendOffer); len(faults) > 0 { // it was added before its board was there
		return backend.Unjudged(one, faults[0].Path+" "+faults[0].Message), nil
	}
	name, own := strings.CutPrefix(one.Device, device.BoardPrefix)
	_, here := p.service.siteOf(one.Device)
	if met := slices.ContainsFunc(model.Sites, func(site emu.Site) bool { return site.Machine == one.Device }); own && !here && !met {
		return backend.Unjudged(one, "no board of the device asked this server for work yet: run \"tandem edge agent --device "+name+"\" on it"), nil
	}
	def, section := model.def, limited(*model.def.Inference, one)
	def.Inference = &section
	found, err := p.service.Deploy(ctx, model.Architecture, model.variants, def, "")
	if err != nil {
		return backend.BackendOption{}, err
	}
	return backend.Judge(one, found[0], model.load), nil
}

// best is the section with the objective of the heaviest weight: the price of a sample is
// least where most are served in an hour.
func best(section definition.Inference, priority backend.Priority) *definition.Inference {
	section.Objective.Metric = map[string]tuning.Metric{
		backend.ByCost: tuning.Throughput, backend.ByEnergy: tuning.Energy, backend.ByLatency: tuning.Latency,
	}[priority.Heaviest()]
	return &section
}

// limited is the section as if the study were to be deployed on the backend alone.
func limited(section definition.Inference, on backend.Backend) definition.Inference {
	section.Devices = []definition.InferenceDevice{{Name: on.Device}}
	if on.Cores > 0 {
		cores := definition.BatchRange{Low: 1, High: on.Cores}
		if own := section.Cores; own != nil {
			cores = definition.BatchRange{Low: min(own.Low, on.Cores), High: min(own.High, on.Cores)}
		}
		section.Cores = &cores
	}
	if on.MemoryMiB > 0 && (section.MemoryMiB == 0 || on.MemoryMiB < section.MemoryMiB) {
		section.MemoryMiB = on.MemoryMiB
	}
	return section
}

// want is what choices of backends want to know of a device: what the recommended
// models of the newest studies take on those of it that could be the best.
func (p *Places) want(ctx context.Context, name string) (list []Wanted, err error) {
	all, err := p.Backends(ctx)
	if err != nil || !slices.ContainsFunc(all, func(one backend.Backend) bool { return one.Device == name }) {
		return nil, err
	}
	var rest []Wanted // which may be better in another setting than the measured ones
	newest := p.service.options.Leaders()
	slices.SortStableFunc(newest, func(a, b journal.View) int { return b.Study.Created.Compare(a.Study.Created) })
	for _, led := range newest[:min(len(newest), max(1, mostJudged/len(all)))] {
		def := led.Study.Definition
		priority, err := priorityOf(def, "")
		if err != nil {
			return nil, err
		}
		answer, err := p.choice(ctx, def, led.Trials[0], priority)
		if ctx.Err() != nil {
			return nil, err
		}
		for _, option := range answer.Options { // none of what a later version or a forgotten architecture has
			if option.Backend.Device != name || !option.Wanted && !option.Known() {
				continue
			}
			section := limited(*best(*def.Inference, priority), option.Backend)
			section.Devices = append(section.Devices, def.Inference.Devices...) // what was measured for them is spent, too
			want := WantedBy(led.Study, led.Trials)
			want.Definition.Inference, want.Settled = &section, !option.Wanted && !option.Settling()
			if option.Wanted {
				list = append(list, want)
			} else {
				rest = append(rest, want)
			}
		}
	}
	return append(list, rest...), nil
}

// deviceFaults says what is wrong with the name of a device.
func deviceFaults(name string) (faults []problem.Field) {
	if own, ok := strings.CutPrefix(name, device.BoardPrefix); ok {
		if !device.IsName(own) {
			faults = append(faults, problem.Field{Path: "device", Value: name, Message: "must have small letters, digits and single hyphens after " + device.BoardPrefix})
		}
		return faults
	}
	devices, err := catalogue()
	if err == nil {
		_, err = device.Find(devices, name)
	}
	if err != nil {
		faults = append(faults, problem.Field{Path: "device", Value: name, Message: "is none of the catalogue (tandem edge devices): begin a name of your own with " + device.BoardPrefix})
	}
	return faults
}
