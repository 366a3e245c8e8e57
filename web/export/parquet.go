package export

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// rowsInGroup is how many trials are put together before they are written: it
// bounds what a download keeps in memory.
const rowsInGroup = 10_000

// Parquet writes the table of trials as Parquet, with the columns of the
// CSV. A number that is none, NaN, is one here: what was never measured is null.
func Parquet(ctx context.Context, studies Studies, view protocol.StudyView, out io.Writer) error {
	columns := columnsOf(view.Definition)
	table := parquet.NewWriter(out, parquet.NewSchema("trials", newColumnOrder(columns)),
		parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(rowsInGroup), parquet.CreatedBy("tandem", "", ""),
		parquet.KeyValueMetadata("study", view.Name), parquet.KeyValueMetadata("study_id", view.ID))
	row := make(parquet.Row, len(columns))
	err := eachTrial(ctx, studies, view.ID, func(one protocol.RankedTrial) error {
		l := lineOf(one)
		for at, column := range columns {
			row[at] = parquetValue(column, l, at)
		}
		_, err := table.WriteRows([]parquet.Row{row})
		return err
	})
	if err != nil {
		return err
	}
	return table.Close()
}

// parquetValue is a cell as Parquet has it. Every column may be empty in a row.
func parquetValue(of column, l line, at int) parquet.Value {
	cell := of.cell(l)
	if cell == nil {
		return parquet.NullValue().Level(0, 0, at)
	}
	var value parquet.Value
	switch cell := cell.(type) {
	case int:
		value = parquet.Int64Value(int64(cell))
	case trial.Float:
		value = parquet.DoubleValue(float64(cell))
	case string:
		value = parquet.ByteArrayValue([]byte(cell))
	case space.Value:
		value = parquetParameter(of.kind, cell)
	}
	return value.Level(0, 1, at)
}

func parquetParameter(kind cellKind, value space.Value) parquet.Value {
	switch kind {
	case whole:
		integer, _ := value.Integer()
		return parquet.Int64Value(integer)
	case real:
		number, _ := value.Number()
		return parquet.DoubleValue(number)
	case truth:
		yes, _ := value.Truth()
		return parquet.BooleanValue(yes)
	case words:
	}
	text, ok := value.Text()
	if !ok {
		text = value.String()
	}
	return parquet.ByteArrayValue([]byte(text))
}

// columnOrder is a group whose columns stay in the order of the table, which the
// library sorts by name.
type columnOrder struct {
	parquet.Group
	place map[string]int
}

func newColumnOrder(columns []column) columnOrder {
	order := columnOrder{parquet.Group{}, make(map[string]int)}
	for at, column := range columns {
		order.Group[column.name], order.place[column.name] = parquet.Optional(leafOf(column.kind)), at
	}
	return order
}

// Fields are the columns in order.
func (o columnOrder) Fields() []parquet.Field {
	fields := o.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int { return cmp.Compare(o.place[a.Name()], o.place[b.Name()]) })
	return fields
}

// String describes the columns.
func (o columnOrder) String() string {
	names := make([]string, len(o.place))
	for name, at := range o.place {
		names[at] = name
	}
	return "group of " + strings.Join(names, ", ")
}

func leafOf(kind cellKind) parquet.Node {
	switch kind {
	case whole:
		return parquet.Int(64)
	case real:
		return parquet.Leaf(parquet.DoubleType)
	case truth:
		return parquet.Leaf(parquet.BooleanType)
	case words:
	}
	return parquet.String()
}
