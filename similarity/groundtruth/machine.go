package groundtruth

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/reuse"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

const (
	// maxGuesses bounds the first guesses for new trials.
	maxGuesses = 1024
	// maxGroupings bounds the methods that records are grouped by at a time, each
	// with its own copy of them. What was not asked for longest gives way.
	maxGroupings = 8
)

// Machine is the ground truth of one type of machine. It is safe for concurrent
// use.
type Machine struct {
	mutex sync.Mutex
	// by is the method of the server, and memories are the same records as each
	// method that is in use groups them.
	by       similarity.Grouping
	memories map[similarity.Grouping]*similarity.Memory
	// recent are the methods of studies, the one that was asked for last at the end.
	recent []similarity.Grouping
	// runs are the records of running trials, by ID.
	runs map[string]similarity.Record
	// puts counts what was learned. guesses are first guesses for new trials; they
	// hold until a twentieth of what is known is new.
	puts    int
	guesses map[guessInput]guessAnswer
}

// guessInput is what the first guess for a study's new trials depends on, in
// addition to what is known.
type guessInput struct {
	study string
	reads string // the configuration's key
	at    reuse.Situation
}

type guessAnswer struct {
	setting trial.Setting
	until   int // puts
}

func newMachine(by similarity.Grouping) *Machine {
	return &Machine{
		by: by, memories: map[similarity.Grouping]*similarity.Memory{by: similarity.NewMemory(similarity.Options{Clusterer: by.Clusterer()})},
		runs: make(map[string]similarity.Record), guesses: make(map[guessInput]guessAnswer),
	}
}

// put takes a record in. The caller holds the lock, or nobody else has the Machine.
func (m *Machine) put(record similarity.Record) {
	for _, memory := range m.memories {
		memory.Put(record)
	}
	m.runs[record.ID] = record
}

func (m *Machine) learn(record similarity.Record) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.puts++
	if len(m.runs) >= maxRuns {
		clear(m.runs)
		for _, kept := range m.memories[m.by].Records() {
			m.runs[kept.ID] = kept
		}
	}
	m.put(record)
}

// memory returns the records as the method groups them; nil is the server's
// method. The caller holds the lock.
func (m *Machine) memory(by *similarity.Grouping) *similarity.Memory {
	if by == nil || *by == m.by {
		return m.memories[m.by]
	}
	m.recent = append(slices.DeleteFunc(m.recent, func(one similarity.Grouping) bool { return one == *by }), *by)
	if len(m.recent) >= maxGroupings {
		delete(m.memories, m.recent[0])
		m.recent = m.recent[1:]
	}
	grouped, ok := m.memories[*by]
	if !ok {
		grouped = similarity.NewMemory(similarity.Options{Clusterer: by.Clusterer()})
		for _, record := range m.memories[m.by].Records() {
			grouped.Put(record)
		}
		m.memories[*by] = grouped
	}
	return grouped
}

// Run is a trial on the machine, for which a system configuration is decided.
type Run struct {
	// Study and Script name its study, and its command and owner: see StudyKey and
	// ScriptKey.
	Study, Script string
	// Code is the same word for all runs with the same files of the script: see CodeKey.
	Code string
	// Fixed is the same word for all runs with the same fixed parameters: see FixedKey.
	Fixed string
	// Record is the ID of what it teaches.
	Record string
	// By is the study's own method of similarity; nil: the server's.
	By        *similarity.Grouping
	Settings  system.Settings
	Constants system.Configuration
	// Reads is what the script takes by itself of the knobs that it asks for.
	Reads     system.Configuration
	Situation reuse.Situation
	// Left is how many epochs it has left.
	Left int
	// Parameters knows what the study's runs search with.
	Parameters reuse.Parameters
}

// Reads is what the run's script takes by itself of the knobs that it asks for, as far as
// its own record says, else the newest of its study or script.
func (m *Machine) Reads(run Run) system.Configuration {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if own, known := m.runs[run.Record]; known {
		return own.Reads
	}
	study, script := m.memory(run.By).Kin(run.record(), reuse.MaxRuns)
	if kin := slices.Concat(script, study); len(kin) > 0 {
		return kin[len(kin)-1].Reads
	}
	return nil
}

// record is that of the run before its first epoch.
func (r Run) record() similarity.Record {
	return similarity.Record{ID: r.Record, Study: r.Study, Script: r.Script, Code: r.Code, Fixed: r.Fixed, Reads: r.Reads}
}

// Start returns the setting of a new lease of the run. It is known of the run
// itself if resumed is true, else of its study, its script or most workloads.
func (m *Machine) Start(run Run) (setting trial.Setting, resumed bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	memory, input := m.memory(run.By), m.input(run)
	own, known := m.runs[run.Record]
	if known {
		input.Record = own
	}
	if !known || len(own.Cells) == 0 {
		return reuse.Start(memory, input), false
	}
	return reuse.Resume(memory, input), true
}

// input is what is known of the run without its record.
func (m *Machine) input(run Run) reuse.Input {
	input := reuse.Input{
		Settings: run.Settings, Constants: run.Constants, Situation: run.Situation, Left: run.Left, Parameters: run.Parameters,
		Record: run.record(),
	}
	input.Planned = m.guess(run, input)
	if input.Planned.Phase == trial.Machine {
		input.MachineBest = input.Planned.Configuration
	}
	return input
}

// Epoch is an epoch of a run that has ended.
type Epoch struct {
	reuse.Epoch
	// Planned is the setting that the epoch was to have.
	Planned trial.Setting
	// Held are knobs that cannot be switched before the command is started again.
	Held []string
	// Machine is the type. NewRecord is the ID of the next record, used if the run
	// has drifted into another workload.
	Machine, NewRecord string
}

// Continue decides with which configuration the run goes on after an epoch.
func (m *Machine) Continue(run Run, epoch Epoch) reuse.Result {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	input := m.input(run)
	input.Record.Machine = epoch.Machine
	if own, known := m.runs[run.Record]; known {
		input.Record = own
		input.Record.Study, input.Record.Script, input.Record.Code, input.Record.Fixed, input.Record.Reads = run.Study, run.Script, run.Code, run.Fixed, run.Reads
	}
	input.Planned, input.NewRecord, input.Epoch, input.Held = epoch.Planned, epoch.NewRecord, epoch.Epoch, epoch.Held
	return reuse.Decide(m.memory(run.By), input)
}

// guess is reuse.Guess, asked again only when enough has been learned since.
func (m *Machine) guess(run Run, input reuse.Input) trial.Setting {
	of := guessInput{run.Study, run.Reads.Key(), run.Situation}
	if known, ok := m.guesses[of]; ok && m.puts < known.until {
		return known.setting
	}
	if len(m.guesses) >= maxGuesses {
		clear(m.guesses)
	}
	memory := m.memory(run.By)
	setting := reuse.Guess(memory, input)
	m.guesses[of] = guessAnswer{setting, m.puts + 1 + memory.Len()/20}
	return setting
}

// StudyKey is the same word for all trials of a study, and tells nothing of it.
func StudyKey(study string) string { return key("study", study) }

// ScriptKey is the same word for all trials of an owner's command, which runs in the
// directory; empty without a command.
func ScriptKey(owner string, command []string, directory string) string {
	if len(command) == 0 {
		return ""
	}
	return key(append([]string{"script", owner, directory}, command...)...)
}

// CodeKey is the same word for all studies whose command runs the same files, by the hash
// in their definitions; empty without one.
func CodeKey(code string) string {
	if code == "" {
		return ""
	}
	return key("code", code)
}

// FixedKey is the same word for all spaces of a script that leave the same single values to
// the same parameters; empty where each has several. Script is of ScriptKey.
func FixedKey(script string, of space.Space) string {
	parts := []string{"fixed" + script}
	for _, p := range of.Parameters {
		if value, fixed := p.Fixed(); fixed {
			parts = append(parts, p.Name+"="+value.String())
		}
	}
	if len(parts) == 1 {
		return ""
	}
	slices.Sort(parts[1:]) // the order of the parameters says nothing
	return key(parts...)
}

// key is a short hash of the parts.
func key(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil)[:12])
}

// RecordID names a run in a way that tells nothing of the trial.
func RecordID(t trial.Trial, machine string) string {
	drifts := 0
	if t.Setting != nil {
		drifts = t.Setting.Drifts
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%g/%d/%d", t.ID, machine, t.Budget.DataFraction, drifts, t.Seed))
	return hex.EncodeToString(sum[:12])
}
