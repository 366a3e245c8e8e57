package sqlite

import "context"

// RefuseNetwork is what Open says of a folder on the file system with the number.
func RefuseNetwork(number uint32) error { return refuseNetwork("/data", number, true) }

// Pragma reads or sets a setting of the connection that writes.
func (s *Store) Pragma(ctx context.Context, setting string) (value string, err error) {
	err = s.writer.do(ctx, func(session *session) error {
		return session.row("PRAGMA "+setting, nil, &value)
	})
	return value, err
}

// Statement writes what no caller can, in a group with what the callers write.
func (s *Store) Statement(ctx context.Context, query string) error {
	return s.writer.do(ctx, func(session *session) error { return session.exec(query) })
}
