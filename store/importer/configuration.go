// Package importer reads what other tools and people have: configurations to
// try, and results that were measured elsewhere, from CSV and JSON files.
//
// It turns them into what the server takes, for the space of one study, and
// says of everything it leaves out why. It runs where the files are: the server
// never opens a file that a client names. It must not know how a search uses
// what it reads.
package importer

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
)

// maxFile bounds a file that is read into memory.
const maxFile = 64 << 20

// ReadConfigurations reads configurations from a file: JSON (a list of objects) if its
// name ends in .json, else CSV with a header of parameter names. In CSV an
// empty cell is a parameter that is missing, and "params_" before a name is
// taken off. The notes say which columns were left out. Whether the values fit
// the space is for the server to say.
func ReadConfigurations(path string, in space.Space) (configurations []space.Configuration, notes []string, err error) {
	data, err := readFile(path)
	if err != nil {
		return nil, nil, err
	}
	if strings.EqualFold(filepath.Ext(path), ".json") {
		if err := json.Unmarshal(data, &configurations); err != nil {
			return nil, nil, problem.New(problem.Invalid, `%s: must be a list of configurations, such as [{"learning_rate": 0.01}]: %w`, path, err)
		}
		return configurations, nil, nil
	}
	t, err := readTable(path, data)
	if err != nil {
		return nil, nil, err
	}
	columns, left := t.parameters(in)
	if len(columns) == 0 {
		return nil, nil, problem.New(problem.Invalid, "%s: no column is named after a parameter of the space, which has %s", path, strings.Join(names(in), ", "))
	}
	for _, row := range t.rows {
		configurations = append(configurations, configurationOf(row, columns))
	}
	if len(left) > 0 {
		notes = append(notes, fmt.Sprintf("%s: left out columns that are no parameters: %s", path, strings.Join(left, ", ")))
	}
	return configurations, notes, nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, problem.New(problem.Invalid, "%w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = problem.New(problem.Invalid, "%s has more than %d bytes", path, maxFile)
	}
	return data, err
}

// table is a CSV file. Every row has as many cells as the header.
type table struct {
	header []string
	rows   [][]string
}

// parameterPrefix is what Tandem's own export, and Optuna's data frames, write
// before a parameter's name.
const parameterPrefix = "params_"

func readTable(path string, data []byte) (table, error) {
	reader := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	rows, err := reader.ReadAll()
	if err == nil && len(rows) == 0 {
		err = errors.New("is empty: the first line must name the columns")
	}
	if err != nil {
		return table{}, problem.New(problem.Invalid, "%s: %w", path, err)
	}
	t := table{header: rows[0], rows: rows[1:]}
	for i, name := range t.header {
		t.header[i] = strings.TrimSpace(name)
		if slices.Contains(t.header[:i], t.header[i]) {
			return table{}, problem.New(problem.Invalid, "%s: two columns are named %q", path, t.header[i])
		}
	}
	return t, nil
}

// column is a parameter's place in a table.
type column struct {
	at        int
	parameter space.Parameter
}

// parameters finds the space's parameters among the columns, and names the others.
func (t table) parameters(in space.Space) (columns []column, left []string) {
	for at, name := range t.header {
		parameter, known := in.Parameter(name)
		if !known {
			parameter, known = in.Parameter(strings.TrimPrefix(name, parameterPrefix))
		}
		if !known {
			left = append(left, name)
			continue
		}
		columns = append(columns, column{at, parameter})
	}
	return columns, left
}

// configurationOf is a row's part of the space.
func configurationOf(row []string, columns []column) space.Configuration {
	configuration := make(space.Configuration, len(columns))
	for _, c := range columns {
		// Exports put an apostrophe before text that a spreadsheet would run.
		cell := strings.TrimSpace(row[c.at])
		if rest := strings.TrimPrefix(cell, "'"); rest != "" && strings.ContainsRune("=+-@", rune(rest[0])) {
			cell = rest
		}
		if cell != "" {
			configuration[c.parameter.Name] = c.parameter.Written(cell)
		}
	}
	return configuration
}

func names(in space.Space) []string {
	list := make([]string, 0, len(in.Parameters))
	for _, parameter := range in.Parameters {
		list = append(list, parameter.Name)
	}
	return list
}
