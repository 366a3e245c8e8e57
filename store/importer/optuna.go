package importer

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// optuna reads a database of Optuna's (versions 3 to 5 have the same tables).
type optuna struct {
	context.Context
	path     string
	database *sql.DB
}

// readOptuna reads a study's trials: the values of those that completed, and of
// those that were pruned the last intermediate value, at its step as epochs.
func readOptuna(ctx context.Context, path, study string, def definition.Definition) (Results, error) {
	if err := checkDatabase(path); err != nil {
		return Results{}, err
	}
	database, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro")
	if err != nil {
		return Results{}, problem.New(problem.Invalid, "open %s: %w", path, err)
	}
	defer database.Close()
	o := optuna{Context: ctx, path: path, database: database}
	id, name, err := o.study(study)
	if err != nil {
		return Results{}, err
	}
	if err := o.checkDirections(id, name, def); err != nil {
		return Results{}, err
	}
	return o.results(id, name, def)
}

func (o optuna) fault(err error) error {
	return problem.New(problem.Invalid, "%s cannot be read as an Optuna database: %w", o.path, err)
}

// study finds the one that is wanted: by name, or the only one.
func (o optuna) study(wanted string) (id int64, name string, err error) {
	rows, err := o.database.QueryContext(o, "SELECT study_id, study_name FROM studies ORDER BY study_id")
	if err != nil {
		return 0, "", o.fault(err)
	}
	defer rows.Close()
	var names []string
	found := false
	for rows.Next() {
		var one int64
		var called string
		if err := rows.Scan(&one, &called); err != nil {
			return 0, "", o.fault(err)
		}
		names = append(names, called)
		if wanted == "" || wanted == called {
			id, name, found = one, called, true
		}
	}
	if err := rows.Err(); err != nil {
		return 0, "", o.fault(err)
	}
	switch {
	case found && (wanted != "" || len(names) == 1):
		return id, name, nil
	case len(names) == 0:
		return 0, "", problem.New(problem.Invalid, "%s has no study", o.path)
	case wanted == "":
		return 0, "", problem.New(problem.Invalid, "%s has %d studies: choose one of %s", o.path, len(names), strings.Join(names, ", "))
	}
	return 0, "", problem.New(problem.Invalid, "%s has no study %q, only %s", o.path, wanted, strings.Join(names, ", "))
}

// checkDirections refuses values that do not mean what this study's mean.
func (o optuna) checkDirections(id int64, name string, def definition.Definition) error {
	theirs, err := column1[string](o, "SELECT lower(direction) FROM study_directions WHERE study_id = ? ORDER BY objective", id)
	if err != nil {
		return err
	}
	ours := make([]string, 0, len(def.Objectives))
	for _, objective := range def.Objectives {
		ours = append(ours, string(objective.Direction))
	}
	if !slices.Equal(theirs, ours) {
		return problem.New(problem.Invalid, "the Optuna study %s is to %s, and this study is to %s: the values do not mean the same",
			name, strings.Join(theirs, ", "), strings.Join(ours, ", "))
	}
	return nil
}

// column1 reads a column of one type.
func column1[T any](o optuna, query string, arguments ...any) ([]T, error) {
	rows, err := o.database.QueryContext(o, query, arguments...)
	if err != nil {
		return nil, o.fault(err)
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		var one T
		if err := rows.Scan(&one); err != nil {
			return nil, o.fault(err)
		}
		list = append(list, one)
	}
	if err := rows.Err(); err != nil {
		return nil, o.fault(err)
	}
	return list, nil
}

// suggested is one row of trial_params.
type suggested struct {
	name         string
	value        float64
	distribution string
}

// results reads the trials one after the other, in their order.
func (o optuna) results(id int64, name string, def definition.Definition) (Results, error) {
	trials, err := o.trials(id)
	if err != nil {
		return Results{}, err
	}
	g := gathering{def: def}
	left := map[string]bool{}
	for _, t := range trials {
		observation := protocol.Observation{Source: "Optuna study " + name}
		reason, err := o.measure(t, &observation, len(def.Objectives))
		if err != nil {
			return Results{}, err
		}
		if reason != "" {
			g.skip(reason)
			continue
		}
		all, err := o.params(t.id)
		if err != nil {
			return Results{}, err
		}
		observation.Params = part(def.Space, all)
		for name := range all {
			if _, kept := observation.Params[name]; !kept {
				left[name] = true
			}
		}
		g.add(observation)
	}
	for _, name := range sorted(left) {
		g.Notes = append(g.Notes, fmt.Sprintf("%s: left out the parameter %s, which the space does not have", o.path, name))
	}
	return g.done(o.path)
}

func sorted(set map[string]bool) []string {
	list := make([]string, 0, len(set))
	for name := range set {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// stored is one row of trials.
type stored struct {
	id    int64
	state string
}

func (o optuna) trials(study int64) ([]stored, error) {
	rows, err := o.database.QueryContext(o, "SELECT trial_id, state FROM trials WHERE study_id = ? ORDER BY number", study)
	if err != nil {
		return nil, o.fault(err)
	}
	defer rows.Close()
	var list []stored
	for rows.Next() {
		var t stored
		if err := rows.Scan(&t.id, &t.state); err != nil {
			return nil, o.fault(err)
		}
		list = append(list, t)
	}
	if err := rows.Err(); err != nil {
		return nil, o.fault(err)
	}
	return list, nil
}

// measure reads the trial's values; it returns why the trial is left out.
func (o optuna) measure(t stored, into *protocol.Observation, objectives int) (reason string, err error) {
	switch t.state {
	case "COMPLETE":
		into.Values, err = o.values(t.id)
		if err == nil && len(into.Values) != objectives {
			reason = "it has no value"
		}
		return reason, err
	case "PRUNED":
		if objectives != 1 {
			return "it was pruned", nil
		}
		return o.lastIntermediate(t.id, into)
	case "FAIL":
		return "it failed", nil
	}
	return "it has not ended", nil
}

func (o optuna) values(trialID int64) ([]trial.Float, error) {
	rows, err := o.database.QueryContext(o, "SELECT value, value_type FROM trial_values WHERE trial_id = ? ORDER BY objective", trialID)
	if err != nil {
		return nil, o.fault(err)
	}
	defer rows.Close()
	var list []trial.Float
	for rows.Next() {
		var number sql.NullFloat64
		var kind string
		if err := rows.Scan(&number, &kind); err != nil {
			return nil, o.fault(err)
		}
		list = append(list, valueOf(number, kind))
	}
	if err := rows.Err(); err != nil {
		return nil, o.fault(err)
	}
	return list, nil
}

// valueOf reads what Optuna stores beside a number, which SQL has no NaN for.
func valueOf(number sql.NullFloat64, kind string) trial.Float {
	switch {
	case kind == "INF_POS":
		return trial.Float(math.Inf(1))
	case kind == "INF_NEG":
		return trial.Float(math.Inf(-1))
	case !number.Valid || kind == "NAN":
		return trial.Float(math.NaN())
	}
	return trial.Float(number.Float64)
}

// lastIntermediate takes the last step as the epochs; step 0 as the first one.
func (o optuna) lastIntermediate(trialID int64, into *protocol.Observation) (reason string, err error) {
	var number sql.NullFloat64
	var kind string
	var first, last float64
	err = o.database.QueryRowContext(o, `SELECT intermediate_value, intermediate_value_type, step,
		(SELECT min(step) FROM trial_intermediate_values WHERE trial_id = v.trial_id)
		FROM trial_intermediate_values v WHERE trial_id = ? ORDER BY step DESC LIMIT 1`, trialID).Scan(&number, &kind, &last, &first)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "it was pruned before it reported a value", nil
	case err != nil:
		return "", o.fault(err)
	}
	if first <= 0 {
		last++
	}
	into.Values, into.Epochs = []trial.Float{valueOf(number, kind)}, max(last, 1)
	return "", nil
}

func (o optuna) params(trialID int64) (space.Configuration, error) {
	rows, err := o.database.QueryContext(o, "SELECT param_name, param_value, distribution_json FROM trial_params WHERE trial_id = ?", trialID)
	if err != nil {
		return nil, o.fault(err)
	}
	defer rows.Close()
	all := space.Configuration{}
	for rows.Next() {
		var p suggested
		if err := rows.Scan(&p.name, &p.value, &p.distribution); err != nil {
			return nil, o.fault(err)
		}
		if all[p.name], err = p.read(); err != nil {
			return nil, o.fault(err)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, o.fault(err)
	}
	return all, nil
}

// read turns Optuna's number into the value it stands for: a categorical is
// stored as the place of its choice.
func (p suggested) read() (space.Value, error) {
	var distribution struct {
		Name       string `json:"name"`
		Attributes struct {
			Choices []json.RawMessage `json:"choices"`
		} `json:"attributes"`
	}
	if err := json.Unmarshal([]byte(p.distribution), &distribution); err != nil {
		return space.Value{}, fmt.Errorf("parameter %s has the distribution %q: %w", p.name, p.distribution, err)
	}
	switch {
	case distribution.Name == "CategoricalDistribution":
		at := int(p.value)
		if at < 0 || at >= len(distribution.Attributes.Choices) {
			return space.Value{}, fmt.Errorf("parameter %s has choice %d of %d", p.name, at, len(distribution.Attributes.Choices))
		}
		var v space.Value
		err := json.Unmarshal(distribution.Attributes.Choices[at], &v)
		return v, err
	case strings.HasPrefix(distribution.Name, "Int") && p.value == math.Trunc(p.value) && math.Abs(p.value) < 1<<53:
		return space.Int(int64(p.value)), nil
	}
	return space.Float(p.value), nil
}
