// Package lossydisk is a file system, in memory and mounted by FUSE, that forgets
// when its power is cut whatever no program asked it to keep. It is for tests.
//
// What survives is what POSIX promises, and no more: of a file, its content at
// its last fsync, with any of the 4 KiB pages that were written since; of a
// folder, its names at its own last fsync, with some of the first changes made
// since. A rename between two folders may so survive in both, in one or in none.
// Real file systems keep more than that; a program that relies on it loses data
// on another one, or with another mount option.
//
// Its one invariant: nothing that survives was never written.
package lossydisk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// page is the unit in which content survives.
const page = 4096

// Disk is a mounted file system. Only other processes may use it: a program that
// reads what it serves itself can wait for itself.
type Disk struct {
	// Path is where it is mounted.
	Path   string
	server *fuse.Server

	mutex sync.Mutex // guards all nodes
	root  *node
	cut   bool
	// left is how many bytes may be written until the disk is full; negative for
	// no bound.
	left int64
}

// Mount mounts an empty disk on the folder.
func Mount(folder string) (*Disk, error) {
	d := &Disk{Path: folder, left: -1}
	d.root = d.node(syscall.S_IFDIR | 0o700)
	options := &fs.Options{MountOptions: fuse.MountOptions{
		FsName: "lossydisk", Name: "lossydisk", DirectMount: os.Geteuid() == 0, DisableXAttrs: true,
	}}
	server, err := fs.Mount(folder, d.root, options)
	if err != nil {
		return nil, fmt.Errorf("mount a file system by FUSE: %w", err)
	}
	d.server = server
	return d, nil
}

// Unmount takes the disk away. Nobody may be using it any more.
func (d *Disk) Unmount() error { return d.server.Unmount() }

// Fill lets programs write so many further bytes until the disk is full.
// A negative number takes the bound away.
func (d *Disk) Fill(left int64) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.left = left
}

// Cut cuts the power: everything fails from now on, and what survives is chosen
// by the seed.
func (d *Disk) Cut(seed uint64) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.cut {
		return
	}
	d.cut = true
	random := rand.New(rand.NewPCG(seed, 0))
	// Some disks have written nothing, some everything, most something.
	luck := []float64{0, 1, 0.5, 0.5, 0.9, 0.1}[seed%6]
	survive := func() bool { return random.Float64() < luck }
	seen := map[*node]bool{}
	var each func(n *node)
	each = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		n.lose(survive)
		for _, names := range []map[string]*node{n.names, n.kept} {
			for _, child := range names {
				each(child)
			}
		}
	}
	each(d.root)
}

// Recover writes what survived the cut to a folder of a real file system.
func (d *Disk) Recover(folder string) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !d.cut {
		return errors.New("the power was not cut")
	}
	return d.root.recover(folder)
}

// change is one that was made to a folder's names: the name now means the node,
// or nothing.
type change struct {
	name string
	node *node
}

// node is a file or a folder.
type node struct {
	fs.Inode
	disk *Disk
	mode uint32

	content []byte           // of a file, as programs see it
	synced  []byte           // at its last fsync
	dirty   map[int64]bool   // pages written since
	names   map[string]*node // of a folder, as programs see them
	kept    map[string]*node // at its last fsync
	changes []change         // made since
}

func (d *Disk) node(mode uint32) *node {
	n := &node{disk: d, mode: mode}
	if n.folder() {
		n.names, n.kept = map[string]*node{}, map[string]*node{}
	} else {
		n.dirty = map[int64]bool{}
	}
	return n
}

func (n *node) folder() bool { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }

// name changes a folder's name.
func (n *node) name(name string, to *node) {
	if to == nil {
		delete(n.names, name)
	} else {
		n.names[name] = to
	}
	n.changes = append(n.changes, change{name, to})
}

func (c change) apply(names map[string]*node) {
	if c.node == nil {
		delete(names, c.name)
	} else {
		names[c.name] = c.node
	}
}

// sync makes the node survive as it is.
func (n *node) sync() {
	for _, c := range n.changes {
		c.apply(n.kept)
	}
	n.changes = nil
	if !n.folder() {
		n.synced = append([]byte(nil), n.content...)
		clear(n.dirty)
	}
}

// lose leaves what survives in kept and synced.
func (n *node) lose(survive func() bool) {
	for _, c := range n.changes {
		if !survive() {
			break // later ones do not overtake earlier ones in one folder
		}
		c.apply(n.kept)
	}
	if n.folder() {
		return
	}
	size := len(n.synced)
	if survive() {
		size = len(n.content)
	}
	left := make([]byte, size)
	copy(left, n.synced)
	for at := range n.dirty {
		from, to := at*page, min((at+1)*page, int64(len(n.content)), int64(size))
		if from < to && survive() {
			copy(left[from:to], n.content[from:to])
		}
	}
	n.synced = left
}

func (n *node) recover(path string) error {
	if !n.folder() {
		return os.WriteFile(path, n.synced, 0o600)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	for name, child := range n.kept {
		if err := child.recover(filepath.Join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// write writes to a file and reports whether the disk had room.
func (n *node) write(data []byte, offset int64) bool {
	end := offset + int64(len(data))
	if grows := end - int64(len(n.content)); grows > 0 && n.disk.left >= 0 {
		if grows > n.disk.left {
			return false
		}
		n.disk.left -= grows
	}
	n.resize(max(end, int64(len(n.content))))
	copy(n.content[offset:], data)
	n.touch(offset, end)
	return true
}

// resize changes a file's length; what is new is zero.
func (n *node) resize(size int64) {
	old := int64(len(n.content))
	if size <= old {
		clear(n.content[size:])
		n.content = n.content[:size]
	} else {
		n.content = append(n.content, make([]byte, size-old)...)
	}
	n.touch(min(old, size), max(old, size))
}

func (n *node) touch(from, to int64) {
	for at := from / page; at*page < to; at++ {
		n.dirty[at] = true
	}
}
