package postgres

import "context"

// Mute ends the heartbeats, as of a server that stands still. It must not be
// called twice.
func (s *Store) Mute() {
	s.closing.Do(func() {
		close(s.stopHeartbeats)
		s.heartbeats.Wait()
	})
}

// Settings are the values in force of a setting, on connections of each pool.
func (d *Database) Settings(ctx context.Context, name string) (reading, writing string, err error) {
	if err := d.reads.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&reading); err != nil {
		return "", "", err
	}
	err = d.writes.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&writing)
	return reading, writing, err
}

// Look returns who owns the database.
func (d *Database) Look(ctx context.Context) (Owner, error) {
	owner, err := d.look(ctx)
	if err != nil {
		return Owner{}, newHealth().explain(err)
	}
	return owner, nil
}
