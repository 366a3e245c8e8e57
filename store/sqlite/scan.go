package sqlite

import (
	"database/sql"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func scanStudy(rows *sql.Rows) (one journal.Study, sum int64, err error) {
	var position, fixed int64
	var r record.StudyRow
	err = dbfile.Columns("study", rows, &position, &one.ID, &r.Name, &r.Definition, &r.Created, &fixed, &r.Status, &one.Reason, &r.Elapsed, &r.Since, &r.Finished, &r.Annotation, &r.Stop, &sum)
	if err != nil {
		return one, sum, err
	}
	if err = dbfile.Prove("study", fixed, dbfile.Checksum("study", position, one.ID, r.Name, r.Definition, r.Created), one.ID); err != nil {
		return one, sum, err
	}
	changing := dbfile.Checksum("study", one.ID, fixed, r.Status, one.Reason, r.Elapsed, textOrNil(r.Since), textOrNil(r.Finished), r.Annotation, r.Stop)
	if err = dbfile.Prove("study", sum, changing, one.ID); err != nil {
		return one, sum, err
	}
	err = r.Fill(&one)
	return one, sum, err
}

func scanTrial(rows *sql.Rows) (one trial.Trial, sum int64, err error) {
	var id, of, state, document string
	var number, lease int64
	if err = dbfile.Columns("trial", rows, &id, &of, &number, &state, &lease, &document, &sum); err != nil {
		return one, sum, err
	}
	if err = dbfile.Prove("trial", sum, dbfile.Checksum("trial", id, of, number, state, lease, document), id); err != nil {
		return one, sum, err
	}
	one, err = record.ParseTrial(document)
	return one, sum, err
}

func scanReport(rows *sql.Rows) (one trial.Report, sum int64, err error) {
	var of, document string
	var rung, epoch int64
	if err = dbfile.Columns("report", rows, &of, &rung, &epoch, &document, &sum); err != nil {
		return one, sum, err
	}
	computed := dbfile.Checksum("report", of, rung, epoch, document)
	if err = dbfile.Prove("report", sum, computed, "epoch ", epoch, " at rung ", rung, " of trial ", of); err != nil {
		return one, sum, err
	}
	one, err = record.ParseReport(document)
	return one, sum, err
}

func scanEvent(rows *sql.Rows) (one journal.Event, sum int64, err error) {
	var at, kind, of, data string
	err = dbfile.Columns("event", rows, &one.Study, &one.Sequence, &at, &kind, &of, &one.State, &one.Worker, &one.Reason, &data, &sum)
	if err != nil {
		return one, sum, err
	}
	computed := dbfile.Checksum("event", one.Study, one.Sequence, at, kind, of, one.State, one.Worker, one.Reason, data)
	if err = dbfile.Prove("event", sum, computed, "event ", one.Sequence, " of study ", one.Study); err != nil {
		return one, sum, err
	}
	err = record.FillEvent(&one, at, kind, of, data)
	return one, sum, err
}

func scanSnapshot(rows *sql.Rows) (one journal.Snapshot, sum int64, err error) {
	var state string
	if err = dbfile.Columns("snapshot", rows, &one.Study, &one.Sequence, &state, &sum); err != nil {
		return one, sum, err
	}
	one.State = record.RawOrNil(state)
	return one, sum, dbfile.Prove("snapshot", sum, dbfile.Checksum("snapshot", one.Study, one.Sequence, state), "of study ", one.Study)
}

func scanReceipt(rows *sql.Rows) (one journal.Receipt, sum int64, err error) {
	var answer, at string
	if err = dbfile.Columns("receipt", rows, &one.Key, &one.Request, &answer, &at, &sum); err != nil {
		return one, sum, err
	}
	if err = dbfile.Prove("receipt", sum, dbfile.Checksum("receipt", one.Key, one.Request, answer, at), one.Key); err != nil {
		return one, sum, err
	}
	one.Answer = record.RawOrNil(answer)
	one.At, err = record.ParseTime(at)
	return one, sum, err
}

// textOrNil returns an optional text as a checksum takes it.
func textOrNil(text *string) any {
	if text == nil {
		return nil
	}
	return *text
}
