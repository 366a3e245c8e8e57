package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/store/postgres"
)

// shared is the PostgreSQL server of these tests; nil where there is none.
var shared *launch.Database

// template is a database with our schema, to make others from.
const template = "tandem_template"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if !chosen { // each check costs some hundred round trips
		if err := flag.Set("rapid.checks", "15"); err != nil {
			panic(err)
		}
	}
	var err error
	shared, err = launch.NewDatabase(context.Background())
	if err == nil {
		err = prepare()
	}
	code := 1
	switch {
	case errors.Is(err, launch.ErrNoPostgreSQL):
		fmt.Println("these tests are skipped:", err)
		code = m.Run()
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
	default:
		code = m.Run()
	}
	if shared != nil {
		if err := shared.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// prepare makes the template.
func prepare() error {
	address, err := shared.Create(context.Background(), template)
	if err != nil {
		return err
	}
	database, err := postgres.Open(context.Background(), postgres.Options{URL: address})
	if err != nil {
		return err
	}
	database.Close()
	return nil
}

// databases counts those that were made.
var databases atomic.Int64

// fresh is the address of an empty database with our schema.
func fresh(t testing.TB) string {
	t.Helper()
	if shared == nil {
		t.Skip("there is no PostgreSQL server here: install initdb and postgres (Debian: apt-get install postgresql)")
	}
	name := fmt.Sprintf("test_%d", databases.Add(1))
	// It goes with the server: to drop it waits for a checkpoint.
	execute(t, shared.URL("postgres"), "CREATE DATABASE "+name+" TEMPLATE "+template)
	return shared.URL(name)
}

// empty removes what the conformance tests write.
func empty(t testing.TB, address string) {
	t.Helper()
	execute(t, address, "DELETE FROM study", "DELETE FROM receipt", "DELETE FROM token", "DELETE FROM ground_truth", "DELETE FROM architecture", "DELETE FROM pool_entry")
}

// execute runs statements past the store, as another program would.
func execute(t testing.TB, address string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	connection, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(ctx)
	for _, statement := range statements {
		if _, err := connection.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// number asks for one number past the store.
func number(t testing.TB, address, query string) (value int64) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(context.Background())
	if err := connection.QueryRow(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// connect opens the database and closes it when the test ends.
func connect(t testing.TB, address string) *postgres.Database {
	t.Helper()
	database, err := postgres.Open(t.Context(), postgres.Options{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(database.Close)
	return database
}

// own makes the test the owner of the database until it ends.
func own(t testing.TB, database *postgres.Database) *postgres.Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	store, err := database.Stand(ctx, postgres.Candidate{Name: t.Name(), Address: "http://" + t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store
}
