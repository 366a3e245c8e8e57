package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
)

func scanStudy(row pgx.CollectableRow) (journal.Study, error) {
	var one journal.Study
	var r record.StudyRow
	err := row.Scan(&one.ID, &r.Name, &r.Definition, &r.Status, &one.Reason, &r.Created, &r.Elapsed, &r.Since, &r.Finished, &r.Annotation, &r.Stop)
	if err != nil {
		return one, err
	}
	err = r.Fill(&one)
	return one, err
}

// scanDocument scans a row that is one document.
func scanDocument[T any](parse func(string) (T, error)) pgx.RowToFunc[T] {
	return func(row pgx.CollectableRow) (one T, err error) {
		document, err := scanText(row)
		if err != nil {
			return one, err
		}
		return parse(document)
	}
}

func scanEvent(row pgx.CollectableRow) (journal.Event, error) {
	var one journal.Event
	var at, kind, id, data string
	err := row.Scan(&one.Study, &one.Sequence, &at, &kind, &id, &one.State, &one.Worker, &one.Reason, &data)
	if err != nil {
		return one, err
	}
	err = record.FillEvent(&one, at, kind, id, data)
	return one, err
}

func scanSnapshot(row pgx.CollectableRow) (journal.Snapshot, error) {
	var one journal.Snapshot
	var state string
	err := row.Scan(&one.Study, &one.Sequence, &state)
	one.State = record.RawOrNil(state)
	return one, err
}

func scanReceipt(row pgx.CollectableRow) (journal.Receipt, error) {
	var one journal.Receipt
	var answer, at string
	err := row.Scan(&one.Key, &one.Request, &answer, &at)
	if err != nil {
		return one, err
	}
	one.Answer = record.RawOrNil(answer)
	one.At, err = record.ParseTime(at)
	return one, err
}
