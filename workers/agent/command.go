package agent

import (
	"errors"
	"fmt"
	"maps"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/workers/agent/artifact"
	"github.com/tandem-tune/tandem/workers/agent/process"
	"github.com/tandem-tune/tandem/workers/agent/script"
	"github.com/tandem-tune/tandem/workers/confidential/enclave"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// starting is a run whose command is being started, or found waiting.
type starting struct{ *run }

// start finds the run a process that waits for one like it, or starts
// its command.
func (r starting) start() error {
	rules, err := r.attested()
	if err != nil {
		return err
	}
	command, err := rules.Find(r.lease)
	if command != nil { // what is not allowed is refused, also where it could not run
		if err := rules.Allows(command, r.lease); err != nil {
			return err
		}
	}
	if err != nil {
		return rules.Policy.Spares(err)
	}
	r.directory = command.Dir
	secrets, err := rules.SecretsOf(r.lease)
	if err != nil {
		return err
	}
	r.secrets = process.NewRedactor(secrets)
	environment := rules.Environment(r.lease, r.agent.cores)
	threads := process.Threads(environment)
	wanted := process.Kind(r.lease, command, maps.Clone(environment))
	s := r.agent.pool.Take(wanted, r.lease.GPUs)
	if s == nil {
		folder, err := r.agent.workspace.NewFolder()
		if err != nil {
			return fmt.Errorf("make the command's folder: %w", err)
		}
		s = r.agent.pool.NewSlot(wanted, r.lease.GPUs, folder)
	}
	r.slot = s
	if s.Process == nil {
		err = r.lend(environment)
	}
	if err == nil {
		err = enclave.Hushed(r.lease, r.prepare())
	}
	if err == nil {
		var own map[string]string
		if own, err = script.Variables(r.lease, r.place.Checkpoint, r.place.Artifacts, r.place.Socket); err == nil && s.Process == nil {
			maps.Copy(environment, secrets)
			maps.Copy(environment, own)
			if r.agent.sandbox.Mode() != sandbox.Off {
				rules.Settle(environment, s.Folder, r.lease)
			}
			err = r.launch(command, environment)
		} else if err == nil {
			maps.Copy(threads, own)
			err = r.handOver(threads)
		}
	}
	if err != nil {
		r.giveUp()
		return err
	}
	r.reading.Go(lineScript(r).read)
	return nil
}

// attested are the rules, with the keys of this lease. While a broker is asked for them,
// nothing has started, and no clock of the trial's runs.
func (r starting) attested() (rules process.Rules, err error) {
	rules, options := r.agent.rules, r.agent.options
	if why := options.Enclave.Refuses(r.lease); why != "" {
		return rules, process.Refuse(errors.New(why))
	}
	r.keys, r.attestation, err = options.Enclave.Keys(r.preparing, r.agent.id, r.lease, options.Keys)
	rules.Keys = r.keys
	if err == nil && r.lease.Confidential != nil {
		r.keyed.Store(true)
		r.agent.beatNow() // people see that it waited
	}
	return rules, err
}

// lend gives the command the study's data sets, for as long as its process lives.
func (r starting) lend(environment map[string]string) error {
	loan, err := r.agent.shelf.With(r.keys).Lend(r.preparing, r.lease, r.stalled)
	err = enclave.Hushed(r.lease, err)
	if err != nil && (r.preparing.Err() != nil || problem.Is(err, problem.Exhausted)) {
		return err // another time there may be room
	}
	if err != nil {
		return process.Refuse(err)
	}
	r.slot.Folder.Free = loan.Return
	for name, folder := range loan.Folders {
		r.slot.Folder.Read = append(r.slot.Folder.Read, folder)
		environment[script.DatasetVariable(name)] = folder
	}
	return nil
}

// prepare makes the run's folder, restores the checkpoint, and opens the socket.
func (r starting) prepare() (err error) {
	if r.place, err = r.slot.Folder.NewRun(); err != nil {
		return fmt.Errorf("make the run's folder: %w", err)
	}
	options := r.agent.options
	r.checkpoint = &artifact.Checkpoint{
		Server: options.Server, Cache: r.agent.cache, Limits: artifact.Limits{Bytes: options.MaxCheckpointBytes, Files: options.MaxCheckpointFiles},
		Lease: r.lease, Folder: r.place.Checkpoint, Stalled: r.stalled, Reached: r.reached, Keys: r.keys, Memory: &r.agent.memory,
		Refused: func(err error) { r.log.Note("%v", err) },
	}
	if err := r.checkpoint.Restore(r.preparing); err != nil {
		return err
	}
	r.reached()
	if err := r.preparing.Err(); err != nil {
		return err
	}
	r.socket, err = script.Listen(r.place.Socket, calls{r.run, r.slot})
	return err
}

// giveUp takes back what was prepared for a run that does not begin.
func (r starting) giveUp() {
	if r.socket != nil {
		r.socket.Close()
	}
	if r.slot.Process != nil {
		r.slot.Dismiss()
	} else {
		r.slot.End()
	}
	r.slot = nil
}
