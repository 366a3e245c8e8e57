package postgres

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tandem-tune/tandem/internal/problem"
)

const (
	// oldestVersion is what server_version_num must be at least.
	oldestVersion = 130000
	// writeConnections are for the writer, the sign of life, a look at an
	// outcome in doubt, and the next owner.
	writeConnections = 4

	// connectTime bounds the making of a connection, unless the address says
	// otherwise; pingTime a look at one that was idle.
	connectTime = 3 * time.Second
	pingTime    = 2 * time.Second
	// answerTime bounds a query, writeTime a group of changes, lookTime one
	// look at who owns the database.
	answerTime = 30 * time.Second
	writeTime  = 10 * time.Second
	lookTime   = 3 * time.Second
)

// sessions are the settings of each connection. The last two end a transaction
// whose server stands still: it holds the lock that the next owner waits for.
func sessions() map[string]string {
	return map[string]string{
		"application_name":                    "tandem",
		"synchronous_commit":                  "on",
		"statement_timeout":                   "30s",
		"idle_in_transaction_session_timeout": "5s",
		"tcp_user_timeout":                    "10s",
	}
}

// config reads the address. What is wrong with it is not told to the letter:
// there may be a password in it.
func (o Options) config() (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil || !strings.HasPrefix(o.URL, "postgres://") && !strings.HasPrefix(o.URL, "postgresql://") {
		return nil, problem.New(problem.Invalid,
			"the address of the database cannot be read: it is postgres://USER@HOST:PORT/DATABASE, where a password's special characters are written as %%XX, with libpq's parameters behind a question mark (sslmode=verify-full, ...)")
	}
	if o.Password != "" {
		config.ConnConfig.Password = o.Password
	}
	for name, value := range sessions() {
		if _, given := config.ConnConfig.RuntimeParams[name]; !given {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	if !strings.Contains(o.URL, "connect_timeout") {
		config.ConnConfig.ConnectTimeout = connectTime
	}
	if config.ConnConfig.ValidateConnect == nil { // of several hosts, the one that takes writes
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	config.PingTimeout, config.HealthCheckPeriod = pingTime, 5*time.Second
	return config, nil
}
