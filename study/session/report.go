package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/tariff"
	"github.com/tandem-tune/tandem/study/tuning"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare"
)

// CheckReport names every fault of a report.
func (r *Session) CheckReport(t trial.Trial, report protocol.Report, machine string) error {
	var faults []problem.Field
	if report.Epoch > t.Budget.Epochs {
		faults = append(faults, problem.Field{Path: "epoch", Value: report.Epoch,
			Message: fmt.Sprintf("must be at most %d, the budget of rung %d", t.Budget.Epochs, t.Rung)})
	}
	for name := range report.Metrics {
		if name == "" || len(name) > 128 {
			faults = append(faults, problem.Field{Path: "metrics", Value: name, Message: "a metric's name must have 1 to 128 bytes"})
		}
	}
	if !(report.Seconds >= 0 && report.Seconds <= maxSeconds) {
		faults = append(faults, problem.Field{Path: "seconds", Value: report.Seconds, Message: "must be a number from 0 to 1e9"})
	}
	if !(report.SetupSeconds >= 0 && report.SetupSeconds <= report.Seconds) {
		faults = append(faults, problem.Field{Path: "setup_seconds", Value: report.SetupSeconds, Message: "must be a number from 0 to seconds, of which it is a part"})
	}
	if !(report.SprintSeconds >= 0 && report.SprintSeconds <= report.Seconds) {
		faults = append(faults, problem.Field{Path: "sprint_seconds", Value: report.SprintSeconds, Message: "must be a number from 0 to seconds, of which it is a part"})
	}
	if !(report.Neighbours >= 0 && report.Neighbours <= maxNeighbours) {
		faults = append(faults, problem.Field{Path: "neighbours", Value: report.Neighbours, Message: fmt.Sprintf("must be a number from 0 to %d", maxNeighbours)})
	}
	faults = append(faults, tuning.UnknownKnobs(report.System)...)
	if report.Energy != nil && (report.Energy.Joules < 0 || !report.Energy.Joules.IsFinite() || report.Energy.Method == "") {
		faults = append(faults, problem.Field{Path: "energy", Value: *report.Energy, Message: "must have finite joules, at least 0, and the method they were obtained by"})
	}
	faults = append(faults, r.Study.Definition.Confidential.Faults(report.Metrics)...)
	faults = append(faults, profileFaults(report)...)
	faults = append(faults, gpushare.Faults(report.GPUUse)...)
	faults = append(faults, unmeasured(t.Budget, report)...)
	if t.Budget.Measured() || report.Epoch == t.Budget.Epochs { // of a measured budget any report may be the last
		goals, err := r.goals()
		if err != nil {
			return err
		}
		t.Cost = t.Cost.Plus(r.costOf(report, machine, r.options.Now()))
		faults = append(faults, goals.Missing(t, report)...)
	}
	if len(faults) > 0 {
		return problem.WithFields("the report is not valid", faults)
	}
	return nil
}

// CheckProfile names what is wrong with a report's profile, whatever its trial.
func CheckProfile(report protocol.Report) error {
	if faults := profileFaults(report); len(faults) > 0 {
		return problem.WithFields("the report is not valid", faults)
	}
	return nil
}

func profileFaults(report protocol.Report) (faults []problem.Field) {
	if report.Profile != nil {
		for _, fault := range report.Profile.Faults() {
			faults = append(faults, problem.Field{Path: "profile", Message: fault})
		}
	}
	return faults
}

// costOf is what the epoch of a report cost that came at the moment.
func (r *Session) costOf(report protocol.Report, machine string, now time.Time) *trial.Cost {
	epoch := tariff.Epoch{Machine: machine, Neighbours: float64(report.Neighbours), Seconds: float64(report.Seconds), At: now}
	if report.Energy != nil {
		epoch.Energy = *report.Energy
	}
	return r.options.Tariff.Cost(epoch)
}

// accept stages a new report; the one that reaches the budget becomes the
// trial's result at its rung.
func (tx *Transaction) accept(t trial.Trial, report protocol.Report, guidance tuning.Guidance) trial.Trial {
	energy := trial.Energy{}
	if report.Energy != nil {
		energy = *report.Energy
	}
	accepted := trial.Report{
		Trial: t.ID, Rung: t.Rung, Epoch: report.Epoch, Metrics: report.Metrics, Seconds: report.Seconds,
		Energy: energy, Profile: report.Profile, LeaseEpoch: t.LeaseEpoch, Worker: t.Worker, At: tx.Now, Attestation: report.Attestation,
		SetupSeconds: report.SetupSeconds, System: guidance.Configuration, SystemPhase: guidance.Phase, SystemWhy: guidance.Why,
		Neighbours: report.Neighbours, Saved: guidance.Saved, Machine: tx.Machine,
		Cost: tx.Session.costOf(report, tx.Machine, tx.Now),
	}
	if guidance.Setting != nil {
		t.Setting = guidance.Setting
	}
	t.Saved = t.Saved.Plus(guidance.Saved)
	t.Epochs++
	t.LostOn = nil
	if report.Epoch > t.LastEpoch {
		t.LastEpoch, t.Last = report.Epoch, report.Metrics
	}
	t.GPUUse = t.GPUUse.Plus(report.GPUUse)
	t.Seconds += report.Seconds
	t.Energy = t.Energy.Plus(energy)
	t.Cost = t.Cost.Plus(accepted.Cost)
	if t.Setting != nil {
		t.SystemUse = trial.Using(t.SystemUse, accepted)
	}
	if reaches(t, report.Epoch) {
		t.Results = append(slices.Clone(t.Results), tx.result(t, report.Metrics))
	}
	t = tx.reshared(moved(t, accepted))
	tx.Change.Reports = append(tx.Change.Reports, accepted)
	tx.Change.Records = append(tx.Change.Records, guidance.Records...)
	told := accepted
	told.Profile = nil // it is as large as all else; who follows the log asks for it
	tx.Log(journal.Event{Kind: journal.Reported, Trial: t.ID, State: string(t.State), Worker: t.Worker}, told)
	tx.Stage(t)
	return t
}

// Report stages what comes of a report.
func (tx *Transaction) Report(t trial.Trial, report protocol.Report, fresh bool, guidance tuning.Guidance) (trial.Trial, error) {
	var err error
	if t.State == trial.Leased {
		if t, err = tx.state(tx.Start.Reported(t), trial.Running, "reported its first epoch of this lease"); err != nil {
			return t, err
		}
	}
	if t.Stalled {
		if t, err = tx.state(t, trial.Running, "reports again"); err != nil {
			return t, err
		}
	}
	if !fresh {
		return t, nil
	}
	if t, err = tx.judge(tx.accept(t, report, guidance), report); err != nil {
		return t, err
	}
	return tx.spend(t)
}

// maxSeconds is how long an epoch may have taken, 31 years: times of trials can
// then be added without end.
const maxSeconds = 1e9

// maxNeighbours is how many trials a machine may run beside one.
const maxNeighbours = 4096

// reshared is the trial with what is expected of it after what was seen of it.
func (tx *Transaction) reshared(t trial.Trial) trial.Trial {
	if t.GPUShare == nil {
		return t
	}
	expected, memory := tx.Session.ExpectedUse(&t), int64(0)
	if expected.MemoryPart > 0 {
		memory = t.GPUShare.MemoryBytes
	}
	t.GPUShare = expected.Noted(max(memory, expected.MemoryBytes))
	return t
}

// Infer stages what an inference of the trial's model takes, if that is new, and what
// follows from it for the values of the result that the trial stands at.
func Infer(tx *Transaction, t trial.Trial, cost trial.InferenceCost) {
	if t.Inference != nil && t.Inference.Same(cost) {
		return
	}
	t.Inference = &cost
	if last := len(t.Results) - 1; last >= 0 && t.Results[last].Rung == t.Rung && reaches(t, t.LastEpoch) {
		goals, err := tx.Session.goals()
		if err == nil && goals.AtEdge() {
			now := goals.Result(t, t.Last)
			t.Results = slices.Clone(t.Results)
			t.Results[last].Values, t.Results[last].Violation, t.Results[last].Estimated = now.Values, now.Violation, now.Estimated
		}
	}
	tx.Log(journal.Event{Kind: journal.Emulated, Trial: t.ID, State: string(t.State), Worker: t.Worker}, t.Inference)
	tx.Stage(t)
}
