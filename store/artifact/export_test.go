package artifact

import "os"

// Exists reports whether the artifact is there. Nothing has an invalid name.
func (s *Store) Exists(sha256 string) bool {
	path, err := s.path(sha256)
	if err != nil {
		return false
	}
	_, err = os.Stat(path)
	return err == nil
}
