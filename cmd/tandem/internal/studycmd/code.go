package studycmd

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
)

// interpreter is a program whose first argument is a script.
var interpreter = regexp.MustCompile(`^(python[0-9.]*|bash|sh|Rscript|julia|node|perl|ruby)$`)

// MissingFile says which file that the command names is not in the directory it starts in;
// empty: none, as far as that can be told.
func MissingFile(def definition.Definition) string {
	argv := slices.Concat(def.Programs(), []string{"-", "-"})
	if interpreter.MatchString(argv[0]) && !strings.HasPrefix(argv[1], "-") {
		argv = argv[1:]
	} else if !strings.Contains(argv[0], "/") {
		return "" // it is looked for where the worker looks
	}
	file := argv[0]
	if !filepath.IsAbs(file) {
		file = filepath.Join(def.Directory, file)
	}
	if _, err := os.Stat(file); def.Service != nil || !os.IsNotExist(err) {
		return ""
	}
	said, beside := fmt.Sprintf("the command's file %s is not in %s", argv[0], filepath.Dir(file)), []string{}
	entries, _ := os.ReadDir(filepath.Dir(file)) //nolint:errcheck // nothing is suggested then
	for _, one := range entries {
		beside = append(beside, one.Name())
	}
	if meant := problem.Meant(filepath.Base(file), beside); meant != "" {
		said += "; did you mean " + meant + "?"
	}
	return said
}

const (
	// maxCodeFiles and maxCodeBytes bound the files of a script that are read.
	maxCodeFiles = 256
	maxCodeBytes = 8 << 20
)

// codeOf is a hash of the files in the directory that the command names, and of those
// beside them that are of the same kind, such as a script and its modules. It is empty
// where the command names none. What cannot be read, or is too much, is left out.
func codeOf(directory string, command []string) string {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return ""
	}
	defer root.Close() //nolint:errcheck // it was only read
	var names []string
	for _, argument := range command {
		if within, err := filepath.Rel(directory, argument); filepath.IsAbs(argument) && err == nil {
			argument = within
		}
		name := path.Clean(filepath.ToSlash(argument))
		if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		names = append(names, name)
		if path.Ext(name) == "" {
			continue
		}
		beside, _ := filepath.Glob(filepath.Join(directory, filepath.FromSlash(path.Dir(name)), "*"+path.Ext(name))) //nolint:errcheck // none then
		for _, one := range beside {
			names = append(names, path.Join(path.Dir(name), filepath.Base(one)))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	hash, left, read := sha256.New(), int64(maxCodeBytes), 0
	for _, name := range names[:min(len(names), maxCodeFiles)] {
		file, err := root.Open(name)
		if err != nil {
			continue
		}
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() <= left {
			fmt.Fprintf(hash, "%d:%s%d:", len(name), name, info.Size()) //nolint:errcheck // never fails
			n, _ := io.Copy(hash, io.LimitReader(file, left))           //nolint:errcheck // what there is of it
			left, read = left-n, read+1
		}
		file.Close() //nolint:errcheck // it was only read
	}
	if read == 0 {
		return ""
	}
	return hex.EncodeToString(hash.Sum(nil)[:12])
}
