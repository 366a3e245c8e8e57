package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
)

// Contents is what a database holds.
type Contents struct {
	// Schema is the version of its schema, Commits how many transactions made it
	// (0 before schema 5, which counts them).
	Schema  int64 `json:"schema"`
	Commits int64 `json:"commits"`
	// Rows is how many rows each table has.
	Rows map[string]int64 `json:"rows"`
	// Artifacts are those that its checkpoints refer to, by SHA-256, each with its
	// length in bytes.
	Artifacts map[string]int64 `json:"-"`
	// Bytes is the size of the database.
	Bytes int64 `json:"bytes"`
}

// table is what proves the rows of a table: each line of checks compares a
// stored checksum with one that is computed, and tallied names the owners of its
// lists.
type table struct {
	name    string
	key     string   // an expression that names a row
	checks  []string // conditions that hold for a row that is what was written
	tallied map[string]string
}

// tables are all tables with rows of users, as the schema has them.
func tables(schema int64) []table {
	annotation, opens := "", ""
	if schema >= annotations {
		annotation, opens = ", annotation", ", study"
	}
	if schema >= extended {
		annotation += ", stop"
	}
	proof := func(columns string) []string { return []string{"checksum = row_checksum(" + columns + ")"} }
	by := func(kind, owner string) map[string]string { return map[string]string{kind: owner} }
	all := []table{
		{"study", "id", []string{
			"fixed_checksum = row_checksum('study', position, id, name, definition, created)",
			"checksum = row_checksum('study', id, fixed_checksum, status, reason, elapsed, since, finished" + annotation + ")",
		}, by("study", "''")},
		{"trial", "id", proof("'trial', id, study, number, state, lease_epoch, document"), by("trial", "study")},
		{"report", "trial || ' ' || rung || ' ' || epoch", proof("'report', trial, rung, epoch, document"), by("report", "trial")},
		{
			"event", "study || ' ' || sequence", proof("'event', study, sequence, at, kind, trial, state, worker, reason, data"),
			map[string]string{"event": "study", told: "nullif(trial, '')"},
		},
		{"snapshot", "study", proof("'snapshot', study, sequence, state"), by("snapshot", "study")},
		{"receipt", "key", proof("'receipt', key, request, answer, at"), by("receipt", "''")},
		{"log", "trial", proof(`'log', trial, bytes, "full"`), nil},
		{"log_chunk", "trial || ' ' || lease_epoch || ' ' || start", proof("'log_chunk', trial, lease_epoch, start, stop, text"), by("log_chunk", "trial")},
		{"token", "id", proof("'token', position, id, name, scope, worker, hash, created, expires, used" + opens), by("token", "''")},
		{"ground_truth", "id", proof("'ground_truth', id, machine, updated, document"), by("ground_truth", "machine")},
		{"architecture", "key", proof("'architecture', key, seen, document"), by("architecture", "''")},
	}
	if schema >= pooled {
		all = append(all, table{"pool_entry", "kind || ' ' || name", proof("'pool_entry', kind, name, document"), by("pool_entry", "kind")})
	}
	return all
}

// The schema versions from which on rows have checksums, studies annotations, the
// pool entries, and studies limits beside their definitions.
const (
	checksums   = 5
	annotations = 6
	pooled      = 7
	extended    = 9
)

// Verify reads the whole database and says what it holds, or all that is wrong
// with it (at most ten findings of a kind). It writes nothing and needs no lock:
// a server may have the database open.
func Verify(ctx context.Context, path string) (Contents, error) {
	contents := Contents{Rows: map[string]int64{}, Artifacts: map[string]int64{}}
	if _, err := os.Stat(path); err != nil {
		return contents, problem.New(problem.Invalid, "there is no database: %w; name the data folder of a server (tandem restore checks a backup)", err)
	}
	database := sql.OpenDB(dbfile.Connector{Source: dbfile.Source(path, url.Values{"mode": {"ro"}})})
	database.SetMaxOpenConns(1)
	err := contents.verify(ctx, database, path)
	return contents, dbfile.Explained(path, errors.Join(err, database.Close()))
}

func (c *Contents) verify(ctx context.Context, database *sql.DB, path string) error {
	if err := dbfile.Identify(ctx, database, path); err != nil {
		return err
	}
	if err := c.version(ctx, database, path); err != nil {
		return err
	}
	// One state of a database that a server may be writing to.
	tx, err := database.BeginTx(ctx, nil)
	if err != nil {
		return dbfile.Unreadable(path, err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	v := view{ctx, tx}
	findings, err := c.findings(v)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && len(findings) == 0 {
		return dbfile.Unreadable(path, err)
	}
	if err != nil {
		findings = append(findings, err.Error())
	}
	if len(findings) > 0 {
		return dbfile.Damaged(path, strings.Join(findings, "\n  "))
	}
	return nil
}

func (c *Contents) version(ctx context.Context, database *sql.DB, path string) error {
	provider, err := dbfile.Migrator(database)
	if err != nil {
		return err
	}
	sources := provider.ListSources()
	newest := sources[len(sources)-1].Version
	err = database.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&c.Schema)
	switch {
	case err != nil:
		return dbfile.Unreadable(path, err)
	case c.Schema == 0:
		return problem.New(problem.Invalid, "the database %s is empty", path)
	case c.Schema > newest:
		return dbfile.TooNew(path, c.Schema, newest)
	}
	return nil
}

// findings are all that is wrong, in words; the error is of a check that could
// not go on.
func (c *Contents) findings(v view) ([]string, error) {
	list := func(query string) ([]string, error) { return collect(v, scanText, query) }
	found, err := list("PRAGMA integrity_check(10)")
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(line string) bool { return line == "ok" })
	orphans, err := list(`SELECT "table" || ': row ' || rowid || ' belongs to no row of ' || parent FROM pragma_foreign_key_check LIMIT 10`)
	found = append(found, orphans...)
	if err != nil {
		return found, err
	}
	if c.Schema >= checksums {
		more, err := c.unproven(v)
		found = append(found, more...)
		if err != nil {
			return found, err
		}
	}
	if len(found) > 0 {
		return found, nil // what is counted must be readable
	}
	return nil, c.count(v)
}

// unproven are the rows and lists that are not what was written.
func (c *Contents) unproven(v view) (found []string, err error) {
	var computed, stored int64
	if err := v.tx.QueryRowContext(v.ctx, "SELECT ("+dbfile.SchemaChecksum+"), schema_checksum, commits FROM server").Scan(&computed, &stored, &c.Commits); err != nil {
		return nil, err
	}
	if stored != 0 && computed != stored { // 0 until the next start, if one was killed behind a migration
		found = append(found, "the schema is not the one that tandem made")
	}
	for _, one := range tables(c.Schema) {
		for _, holds := range one.checks {
			rows, err := collect(v, scanText, "SELECT "+one.key+" FROM "+one.name+" NOT INDEXED WHERE NOT ("+holds+") LIMIT 10")
			if err != nil {
				return found, err
			}
			for _, row := range rows {
				found = append(found, dbfile.Damage{Table: one.name, Row: row, Finding: "it is not what was written: its checksum differs"}.Error())
			}
		}
		for kind, owner := range one.tallied {
			// One pass over both: a join of them would compare each with each.
			lists, err := collect(v, scanText, `WITH list AS (
				SELECT `+owner+` AS owner, count(*) AS there, sum(checksum) AS value, 0 AS written, 0 AS total
					FROM `+one.name+` NOT INDEXED WHERE `+owner+` IS NOT NULL GROUP BY 1
				UNION ALL SELECT owner, 0, 0, entries, total FROM tally WHERE kind = '`+kind+`' AND entries <> 0)
				SELECT owner || ': ' || sum(there) || ' rows are there, and ' || sum(written) || ' were written, or some are older versions'
				FROM list GROUP BY owner HAVING sum(there) <> sum(written) OR sum(value) <> sum(total) LIMIT 10`)
			if err != nil {
				return found, err
			}
			for _, one := range lists {
				found = append(found, "the list of "+kind+"s of "+one)
			}
		}
	}
	return found, nil
}

// count counts the rows, and lists the artifacts of checkpoints.
func (c *Contents) count(v view) error {
	for _, one := range tables(c.Schema) {
		var exists bool
		if err := v.tx.QueryRowContext(v.ctx, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?", one.name).Scan(&exists); err != nil {
			return err
		}
		if !exists { // not in this schema yet
			continue
		}
		var rows int64
		if err := v.tx.QueryRowContext(v.ctx, "SELECT count(*) FROM "+one.name).Scan(&rows); err != nil {
			return err
		}
		c.Rows[one.name] = rows
	}
	if err := v.tx.QueryRowContext(v.ctx, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").Scan(&c.Bytes); err != nil {
		return err
	}
	_, err := collect(v, c.countArtifacts, "SELECT study.status, trial.document FROM trial JOIN study ON study.id = trial.study")
	return err
}

func (c *Contents) countArtifacts(rows *sql.Rows) (none struct{}, err error) {
	var status, document string
	if err := dbfile.Columns("trial", rows, &status, &document); err != nil {
		return none, err
	}
	t, err := record.ParseTrial(document)
	for _, checkpoint := range t.Artifacts(protocol.StudyStatus(status).Over()) {
		c.Artifacts[checkpoint.Artifact] = checkpoint.Bytes
	}
	return none, err
}

// String says what there is, in words.
func (c Contents) String() string {
	return fmt.Sprintf("schema %d, %d studies, %d trials, %d reports, %d events, %d tokens",
		c.Schema, c.Rows["study"], c.Rows["trial"], c.Rows["report"], c.Rows["event"], c.Rows["token"])
}
