package audit

// Fail makes every later write of the log's file fail, as a disk that is gone.
func (l *Log) Fail() error {
	file := l.folder.file
	return file.Close()
}

// Hashed returns the entry's line with the hashes that it would have been
// written with, for whoever forges one.
func (e Entry) Hashed() string {
	line, _, err := e.line()
	if err != nil {
		panic(err)
	}
	return string(line)
}
