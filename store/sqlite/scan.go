package sqlite

import (
	"database/sql"
	"time"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/trial"
)

func scanStudy(row *sql.Rows) (study.Study, error) {
	var one study.Study
	var document, status, created string
	var elapsed int64
	var since, finished sql.NullString
	err := row.Scan(&one.ID, &document, &status, &one.Reason, &created, &elapsed, &since, &finished)
	if err != nil {
		return one, err
	}
	one.Status, one.Elapsed = protocol.StudyStatus(status), time.Duration(elapsed)
	if one.Definition, err = record.ParseDefinition(document); err != nil {
		return one, err
	}
	if one.Created, err = record.ParseTime(created); err != nil {
		return one, err
	}
	if one.Since, err = parseOptional(since); err != nil {
		return one, err
	}
	one.Finished, err = parseOptional(finished)
	return one, err
}

func scanTrial(row *sql.Rows) (trial.Trial, error) {
	var document string
	if err := row.Scan(&document); err != nil {
		return trial.Trial{}, err
	}
	return record.ParseTrial(document)
}

func scanReport(row *sql.Rows) (trial.Report, error) {
	var document string
	if err := row.Scan(&document); err != nil {
		return trial.Report{}, err
	}
	return record.ParseReport(document)
}

func scanEvent(row *sql.Rows) (study.Event, error) {
	var one study.Event
	var at, data string
	err := row.Scan(&one.Study, &one.Sequence, &at, &one.Kind, &one.Trial, &one.State, &one.Worker, &one.Reason, &data)
	if err != nil {
		return one, err
	}
	one.Data = record.RawOrNil(data)
	one.At, err = record.ParseTime(at)
	return one, err
}

func scanSnapshot(row *sql.Rows) (study.Snapshot, error) {
	var one study.Snapshot
	var state string
	err := row.Scan(&one.Study, &one.Sequence, &state)
	one.State = record.RawOrNil(state)
	return one, err
}

func scanReceipt(row *sql.Rows) (study.Receipt, error) {
	var one study.Receipt
	var answer, at string
	if err := row.Scan(&one.Key, &one.Request, &answer, &at); err != nil {
		return one, err
	}
	var err error
	one.Answer = record.RawOrNil(answer)
	one.At, err = record.ParseTime(at)
	return one, err
}

func parseOptional(text sql.NullString) (*time.Time, error) {
	if !text.Valid {
		return nil, nil //nolint:nilnil // no time is a value here
	}
	at, err := record.ParseTime(text.String)
	return &at, err
}
