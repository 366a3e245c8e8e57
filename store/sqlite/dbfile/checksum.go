package dbfile

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"sync"

	"github.com/mattn/go-sqlite3"
)

// Row is a table's row as it is stored: its values and their checksum.
func Row(table string, values ...any) []any {
	return append(values, Checksum(table, values...))
}

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// buffers are for rows, as they are summed up.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Checksum is the CRC-32C of a row: of its table's name and its values, each
// with its type and length. The values are of SQLite's types.
func Checksum(table string, values ...any) int64 {
	buffer := buffers.Get().(*[]byte) //nolint:forcetypeassert // there is nothing else in it
	data := appendValue((*buffer)[:0], table)
	for _, value := range values {
		data = appendValue(data, value)
	}
	sum := crc32.Checksum(data, castagnoli)
	*buffer = data
	buffers.Put(buffer)
	return int64(sum)
}

func appendValue(data []byte, value any) []byte {
	long := func(kind byte, bits uint64) []byte { return binary.LittleEndian.AppendUint64(append(data, kind), bits) }
	switch value := value.(type) {
	case nil:
		return append(data, 'n')
	case int64:
		return long('i', uint64(value)) //nolint:gosec // all bits count
	case float64:
		return long('f', math.Float64bits(value))
	case string:
		return append(long('t', uint64(len(value))), value...)
	case []byte:
		if value == nil { // a NULL, as the driver hands it to functions
			return append(data, 'n')
		}
		return append(long('b', uint64(len(value))), value...)
	}
	panic(fmt.Sprintf("a checksum of a %T, which is no type of SQLite's", value))
}

// rowDriver is SQLite with our function row_checksum(table, values...), which
// migrations and checks of whole tables use.
var rowDriver = &sqlite3.SQLiteDriver{ConnectHook: func(connection *sqlite3.SQLiteConn) error {
	return connection.RegisterFunc("row_checksum", Checksum, true)
}}

// Connector opens connections to one database.
type Connector struct{ Source string }

func (c Connector) Connect(context.Context) (driver.Conn, error) { return rowDriver.Open(c.Source) }
func (c Connector) Driver() driver.Driver                        { return rowDriver }

// Damage is a row that is not what was written, or a list that lacks one.
type Damage struct {
	Table   string
	Row     string // names the row or the list to people
	Finding string
}

func (d Damage) Error() string {
	return fmt.Sprintf("table %s, %s: %s", d.Table, d.Row, d.Finding)
}

// Prove compares a row's checksum with the one that was stored with it. The
// words name the row.
func Prove(table string, stored, computed int64, words ...any) error {
	if stored == computed {
		return nil
	}
	return Damage{Table: table, Row: fmt.Sprint(words...), Finding: fmt.Sprintf("its checksum is %08x, and %08x was stored with it: it is not what was written", computed, stored)}
}

// Columns reads the present row. What does not fit into the columns' types was
// never written.
func Columns(table string, rows *sql.Rows, into ...any) error {
	if err := rows.Scan(into...); err != nil {
		return Damage{Table: table, Row: "a row", Finding: err.Error()}
	}
	return nil
}
