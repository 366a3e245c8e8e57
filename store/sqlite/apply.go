package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/trial"
)

// Apply makes the change durable; see study.Store.
func (s *Store) Apply(ctx context.Context, change study.Change) error {
	write, err := encode(change)
	if err != nil {
		return problem.New(problem.Internal, "encode a change: %w", err)
	}
	return s.writer.do(ctx, write.run)
}

// encoded is a change with its documents in JSON, made before the writer's
// turn so that the writer only writes.
type encoded struct {
	change     study.Change
	definition []byte
	trials     [][]byte
	reports    [][]byte
}

func encode(change study.Change) (encoded, error) {
	e := encoded{change: change}
	var err error
	if change.Insert != nil {
		if e.definition, err = json.Marshal(change.Insert.Definition); err != nil {
			return e, err
		}
	}
	for _, write := range change.Trials {
		document, err := json.Marshal(write.Trial)
		if err != nil {
			return e, err
		}
		e.trials = append(e.trials, document)
	}
	for _, report := range change.Reports {
		document, err := json.Marshal(report)
		if err != nil {
			return e, err
		}
		e.reports = append(e.reports, document)
	}
	return e, nil
}

func (e encoded) run(s *session) error {
	for _, step := range []func(*session) error{e.writeStudy, e.writeTrials, e.writeReports, e.writeEvents, e.writeRest} {
		if err := step(s); err != nil {
			return err
		}
	}
	return nil
}

func (e encoded) writeStudy(s *session) error {
	if one := e.change.Insert; one != nil {
		err := s.exec(`INSERT INTO study (id, name, definition, status, reason, created, elapsed, since, finished)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			one.ID, one.Definition.Name, string(e.definition), string(one.Status), one.Reason,
			one.Created.UnixNano(), int64(one.Elapsed), nanoseconds(one.Since), nanoseconds(one.Finished))
		if taken(err) {
			return problem.New(problem.Conflict, "a study named %q (or with id %s) exists already", one.Definition.Name, one.ID)
		}
		if err != nil {
			return err
		}
	}
	if one := e.change.Update; one != nil {
		rows, err := s.affect("UPDATE study SET status = ?, reason = ?, elapsed = ?, since = ?, finished = ? WHERE id = ?",
			string(one.Status), one.Reason, int64(one.Elapsed), nanoseconds(one.Since), nanoseconds(one.Finished), one.ID)
		if err != nil {
			return err
		}
		if rows == 0 {
			return problem.New(problem.NotFound, "there is no study %q", one.ID)
		}
	}
	if id := e.change.Delete; id != "" {
		rows, err := s.affect("DELETE FROM study WHERE id = ?", id)
		if err != nil {
			return err
		}
		if rows == 0 {
			return problem.New(problem.NotFound, "there is no study %q", id)
		}
	}
	return nil
}

func (e encoded) writeTrials(s *session) error {
	for i, write := range e.change.Trials {
		t, document := write.Trial, string(e.trials[i])
		if write.Guard == nil {
			err := s.exec("INSERT INTO trial (id, study_id, number, state, lease_epoch, document) VALUES (?, ?, ?, ?, ?, ?)",
				string(t.ID), t.Study, t.Number, string(t.State), int64(t.LeaseEpoch), document)
			if err := refusal(err, "trial "+string(t.ID), t.Study); err != nil {
				return err
			}
			continue
		}
		rows, err := s.affect("UPDATE trial SET state = ?, lease_epoch = ?, document = ? WHERE id = ? AND lease_epoch = ? AND state = ?",
			string(t.State), int64(t.LeaseEpoch), document, string(t.ID), int64(write.Guard.LeaseEpoch), string(write.Guard.State))
		if err != nil {
			return err
		}
		if rows == 0 {
			return s.missed(t.ID, *write.Guard)
		}
	}
	return nil
}

// missed says why a guarded write hit no row.
func (s *session) missed(id trial.ID, guard study.Guard) error {
	statement, err := s.statement("SELECT state, lease_epoch FROM trial WHERE id = ?")
	if err != nil {
		return err
	}
	rows, err := statement.Query(string(id))
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return problem.New(problem.NotFound, "there is no trial %q", id)
	}
	var state string
	var epoch int64
	if err := rows.Scan(&state, &epoch); err != nil {
		return err
	}
	return problem.New(problem.LeaseLost, "trial %s is %s under lease %d, not %s under lease %d", id, state, epoch, guard.State, guard.LeaseEpoch)
}

// refusal turns a broken rule of the schema into the caller's error.
func refusal(err error, what, parent string) error {
	switch {
	case taken(err):
		return problem.New(problem.Conflict, "%s is taken already", what)
	case orphaned(err):
		return problem.New(problem.NotFound, "%s belongs to %q, which does not exist", what, parent)
	}
	return err
}

func (e encoded) writeReports(s *session) error {
	for i, report := range e.change.Reports {
		err := s.exec("INSERT INTO report (trial_id, rung, epoch, document) VALUES (?, ?, ?, ?) ON CONFLICT (trial_id, rung, epoch) DO NOTHING",
			string(report.Trial), report.Rung, report.Epoch, string(e.reports[i]))
		if err := refusal(err, "a report", string(report.Trial)); err != nil {
			return err
		}
	}
	return nil
}

func (e encoded) writeEvents(s *session) error {
	for _, event := range e.change.Events {
		err := s.exec(`INSERT INTO event (study_id, sequence, at, kind, trial_id, state, worker, reason, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			event.Study, event.Sequence, event.At.UnixNano(), string(event.Kind), string(event.Trial), event.State, event.Worker, event.Reason, string(event.Data))
		if err := refusal(err, "the event's sequence", event.Study); err != nil {
			return err
		}
	}
	return nil
}

func (e encoded) writeRest(s *session) error {
	if one := e.change.Snapshot; one != nil {
		err := s.exec(`INSERT INTO snapshot (study_id, sequence, state) VALUES (?, ?, ?)
			ON CONFLICT (study_id) DO UPDATE SET sequence = excluded.sequence, state = excluded.state WHERE excluded.sequence >= sequence`,
			one.Study, one.Sequence, string(one.State))
		if err := refusal(err, "a snapshot", one.Study); err != nil {
			return err
		}
	}
	if one := e.change.Receipt; one != nil {
		err := s.exec("INSERT INTO receipt (key, request, answer, at) VALUES (?, ?, ?, ?)",
			one.Key, one.Request, string(one.Answer), one.At.UnixNano())
		if err := refusal(err, "the idempotency key", one.Key); err != nil {
			return err
		}
	}
	return nil
}

// nanoseconds is a time as stored; nil for none.
func nanoseconds(at *time.Time) any {
	if at == nil {
		return nil
	}
	return at.UnixNano()
}
