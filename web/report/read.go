package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// Read reads what the server exports of a study as JSON: {"study",
// "recommendation", "trials", "events"}. Events are taken in one by one, so that
// those of a large study are never held all at once.
func Read(in io.Reader) (Source, error) {
	var source Source
	decoder := json.NewDecoder(in)
	if err := expect(decoder, '{'); err != nil {
		return source, err
	}
	var history *collector
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return source, unreadable(err)
		}
		switch key {
		case "study":
			err = decoder.Decode(&source.Study)
		case "recommendation":
			err = decoder.Decode(&source.Recommendation)
		case "trials":
			err = each(decoder, func(one protocol.RankedTrial) error {
				source.Trials = append(source.Trials, one)
				return nil
			})
		case "events":
			if len(source.Study.Definition.Objectives) == 0 {
				return source, fmt.Errorf("the export has no study before its events: it is not what 'tandem study export --format json' writes")
			}
			history = newCollector(source.Study.Definition)
			err = each(decoder, history.add)
		default: // something a newer server adds
			var skipped json.RawMessage
			err = decoder.Decode(&skipped)
		}
		if err != nil {
			return source, unreadable(err)
		}
	}
	if err := expect(decoder, '}'); err != nil {
		return source, err
	}
	if history == nil {
		return source, fmt.Errorf("the export has no events: it is not what 'tandem study export --format json' writes")
	}
	source.History = history.end()
	source.Workers = hostsOf(source.Trials)
	slices.SortStableFunc(source.Trials, func(a, b protocol.RankedTrial) int {
		if (a.Rank > 0) != (b.Rank > 0) { // those without a rank come last
			return b.Rank - a.Rank
		}
		return cmp.Or(a.Rank-b.Rank, a.Number-b.Number)
	})
	return source, nil
}

// unreadable is the error of an export that is cut short or none.
func unreadable(err error) error { return fmt.Errorf("read the study's export: %w", err) }

func expect(decoder *json.Decoder, wanted json.Delim) error {
	token, err := decoder.Token()
	if err != nil {
		return unreadable(err)
	}
	if token != wanted {
		return unreadable(fmt.Errorf("%v stands where %v should", token, wanted))
	}
	return nil
}

// each decodes the items of a list, one after the other.
func each[T any](decoder *json.Decoder, take func(T) error) error {
	if err := expect(decoder, '['); err != nil {
		return err
	}
	for decoder.More() {
		var one T
		if err := decoder.Decode(&one); err != nil {
			return err
		}
		if err := take(one); err != nil {
			return err
		}
	}
	return expect(decoder, ']')
}

// hostsOf are names for the workers that trials had last: their machines, which
// are known when the workers are long gone.
func hostsOf(trials []protocol.RankedTrial) map[string]string {
	hosts := map[string]string{}
	for _, one := range trials {
		if one.Worker != "" && one.Host != "" {
			hosts[one.Worker] = one.Host + " (" + clipped(one.Worker, 14) + ")"
		}
	}
	return hosts
}
