package lossydisk

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

var (
	_ fs.NodeLookuper  = (*node)(nil)
	_ fs.NodeGetattrer = (*node)(nil)
	_ fs.NodeSetattrer = (*node)(nil)
	_ fs.NodeOpener    = (*node)(nil)
	_ fs.NodeReader    = (*node)(nil)
	_ fs.NodeWriter    = (*node)(nil)
	_ fs.NodeFsyncer   = (*node)(nil)
	_ fs.NodeCreater   = (*node)(nil)
	_ fs.NodeMkdirer   = (*node)(nil)
	_ fs.NodeUnlinker  = (*node)(nil)
	_ fs.NodeRmdirer   = (*node)(nil)
	_ fs.NodeRenamer   = (*node)(nil)
	_ fs.NodeLinker    = (*node)(nil)
	_ fs.NodeReaddirer = (*node)(nil)
	_ fs.NodeStatfser  = (*node)(nil)
)

// enter begins an operation, which ends with leave. Without power all fail.
func (n *node) enter() syscall.Errno {
	n.disk.mutex.Lock()
	if n.disk.cut {
		return syscall.EIO
	}
	return 0
}

func (n *node) leave() { n.disk.mutex.Unlock() }

func (n *node) attributes(out *fuse.Attr) {
	out.Mode = n.mode
	out.Size = uint64(len(n.content))
	out.Blocks = (out.Size + 511) / 512
	out.Nlink = 1
	out.Blksize = page
}

// inode is the node as FUSE knows it.
func (n *node) inode(ctx context.Context, child *node, out *fuse.EntryOut) *fs.Inode {
	child.attributes(&out.Attr)
	if child.Inode.StableAttr().Ino != 0 {
		return &child.Inode
	}
	return n.NewPersistentInode(ctx, child, fs.StableAttr{Mode: child.mode & syscall.S_IFMT})
}

// Lookup finds a name in the folder.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	defer n.leave()
	if err := n.enter(); err != 0 {
		return nil, err
	}
	child := n.names[name]
	if child == nil {
		return nil, syscall.ENOENT
	}
	return n.inode(ctx, child, out), 0
}

// Getattr returns length and mode.
func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	defer n.leave()
	err := n.enter()
	n.attributes(&out.Attr)
	return err
}

// Setattr changes length and mode. Times are not kept.
func (n *node) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	defer n.leave()
	if err := n.enter(); err != 0 {
		return err
	}
	if mode, set := in.GetMode(); set {
		n.mode = n.mode&syscall.S_IFMT | mode&^syscall.S_IFMT
	}
	if size, set := in.GetSize(); set {
		n.resize(int64(size))
	}
	n.attributes(&out.Attr)
	return 0
}

// Open opens a file. The kernel may keep its pages, as of any disk.
func (n *node) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	defer n.leave()
	return nil, fuse.FOPEN_KEEP_CACHE, n.enter()
}

// Read reads from a file.
func (n *node) Read(_ context.Context, _ fs.FileHandle, into []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	defer n.leave()
	if err := n.enter(); err != 0 {
		return nil, err
	}
	if offset >= int64(len(n.content)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(into[:copy(into, n.content[offset:])]), 0
}

// Write writes to a file.
func (n *node) Write(_ context.Context, _ fs.FileHandle, data []byte, offset int64) (uint32, syscall.Errno) {
	defer n.leave()
	if err := n.enter(); err != 0 {
		return 0, err
	}
	if !n.write(data, offset) {
		return 0, syscall.ENOSPC
	}
	return uint32(len(data)), 0
}

// Fsync makes a file's content, or a folder's names, survive.
func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	defer n.leave()
	if err := n.enter(); err != 0 {
		return err
	}
	n.sync()
	return 0
}

// Create makes a file.
func (n *node) Create(ctx context.Context, name string, _, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	child, err := n.add(ctx, name, syscall.S_IFREG|mode&0o777, out)
	return child, nil, fuse.FOPEN_KEEP_CACHE, err
}

// Mkdir makes a folder.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.add(ctx, name, syscall.S_IFDIR|mode&0o777, out)
}

func (n *node) add(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	defer n.leave()
	if err := n.enter(); err != 0 {
		return nil, err
	}
	child := n.disk.node(mode)
	n.name(name, child)
	return n.inode(ctx, child, out), 0
}

// Unlink removes a file's name.
func (n *node) Unlink(_ context.Context, name string) syscall.Errno { return n.remove(name) }

// Rmdir removes an empty folder.
func (n *node) Rmdir(_ context.Context, name string) syscall.Errno { return n.remove(name) }

func (n *node) remove(name string) syscall.Errno {
	defer n.leave()
	if err := n.enter(); err != 0 {
		return err
	}
	child := n.names[name]
	switch {
	case child == nil:
		return syscall.ENOENT
	case len(child.names) > 0:
		return syscall.ENOTEMPTY
	}
	n.name(name, nil)
	return 0
}

// Rename moves a name, over one that is there. To survive, both folders must be
// synced.
func (n *node) Rename(_ context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	defer n.leave()
	if err := n.enter(); err != 0 {
		return err
	}
	to, ours := parent.(*node)
	child := n.names[name]
	switch {
	case !ours || flags != 0:
		return syscall.EINVAL
	case child == nil:
		return syscall.ENOENT
	case to.names[newName] != nil && len(to.names[newName].names) > 0:
		return syscall.ENOTEMPTY
	}
	to.name(newName, child)
	n.name(name, nil)
	return 0
}

// Link gives a file another name.
func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	defer n.leave()
	if err := n.enter(); err != 0 {
		return nil, err
	}
	child, ours := target.(*node)
	if !ours {
		return nil, syscall.EXDEV
	}
	n.name(name, child)
	return n.inode(ctx, child, out), 0
}

// Readdir lists the folder.
func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	defer n.leave()
	if err := n.enter(); err != 0 {
		return nil, err
	}
	list := make([]fuse.DirEntry, 0, len(n.names))
	for name, child := range n.names {
		list = append(list, fuse.DirEntry{Name: name, Mode: child.mode & syscall.S_IFMT})
	}
	return fs.NewListDirStream(list), 0
}

// Statfs says that there is room, or how much.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	defer n.leave()
	if err := n.enter(); err != 0 {
		return err
	}
	out.Bsize, out.Frsize, out.NameLen = page, page, 255
	out.Blocks, out.Bfree, out.Bavail = 1<<20, 1<<20, 1<<20
	if n.disk.left >= 0 {
		out.Bfree = uint64(n.disk.left) / page
		out.Bavail = out.Bfree
	}
	return 0
}
