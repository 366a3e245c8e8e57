package sandbox

import (
	"errors"
	"fmt"
	"os"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// What Landlock can forbid, in the ABI versions that added it.
const (
	reading    = landlock.AccessFSExecute | landlock.AccessFSReadFile | landlock.AccessFSReadDir
	firstWrite = landlock.AccessFSWriteFile | landlock.AccessFSRemoveDir | landlock.AccessFSRemoveFile | landlock.AccessFSMakeChar |
		landlock.AccessFSMakeDir | landlock.AccessFSMakeReg | landlock.AccessFSMakeSock | landlock.AccessFSMakeFifo | landlock.AccessFSMakeBlock | landlock.AccessFSMakeSym
	// ofFiles are the rights that a rule on something that is no folder can give.
	ofFiles = landlock.AccessFSExecute | landlock.AccessFSWriteFile | landlock.AccessFSReadFile | landlock.AccessFSTruncate | landlock.AccessFSIoctlDev
	scopes  = landlock.ScopeAbstractUnixSocket | landlock.ScopeSignal
	// scopesSince is the ABI version that knows scopes.
	scopesSince = 6
)

// handled are the rights on files that the ABI version can forbid.
func handled(version int) uint64 {
	rights := uint64(reading | firstWrite)
	for since, right := range map[int]uint64{2: landlock.AccessFSRefer, 3: landlock.AccessFSTruncate, 5: landlock.AccessFSIoctlDev, 9: landlock.AccessFSResolveUnix} {
		if version >= since {
			rights |= right
		}
	}
	return rights
}

// landlock restricts this thread. It is not done by the library's own function,
// which goes through all threads with signals: here only one matters.
func (o order) landlock() []Layer {
	var said []Layer
	say := func(name string, active bool, detail string) {
		if o.has(name) {
			said = append(said, Layer{Name: name, Active: active, Detail: detail})
		}
	}
	version, err := landlock.LandlockGetABIVersion()
	if err != nil || version < 1 {
		const missing = "the kernel has no Landlock (5.13 or newer, with landlock in its boot option lsm=, and a container that allows it)"
		say(Files, false, missing)
		say(Signals, false, missing)
		return said
	}
	var rules landlock.RulesetAttr
	if o.has(Files) {
		rules.HandledAccessFS = handled(version)
	}
	if o.has(Signals) && version >= scopesSince {
		rules.Scoped = scopes
	}
	if err := o.restrict(rules); err != nil {
		say(Files, false, err.Error())
		say(Signals, false, err.Error())
		return said
	}
	say(Files, true, fmt.Sprintf("Landlock ABI %d: only what was granted can be opened", version))
	if version < scopesSince {
		say(Signals, false, fmt.Sprintf("the kernel's Landlock (ABI %d) does not know signals yet (6.12 or newer does)", version))
	} else {
		say(Signals, true, "no signals to processes outside, no abstract sockets of theirs")
	}
	return said
}

func (o order) restrict(rules landlock.RulesetAttr) error {
	if rules.HandledAccessFS == 0 && rules.Scoped == 0 {
		return nil
	}
	set, err := landlock.LandlockCreateRuleset(&rules, 0)
	if err != nil {
		return fmt.Errorf("make the rules: %w", err)
	}
	defer unix.Close(set)
	if rules.HandledAccessFS != 0 {
		writing := rules.HandledAccessFS &^ uint64(landlock.AccessFSMakeChar|landlock.AccessFSMakeBlock|landlock.AccessFSIoctlDev)
		for _, one := range []struct {
			paths  []string
			rights uint64
		}{
			{o.Reach.Read, reading}, {o.Reach.Write, writing}, {o.Reach.List, landlock.AccessFSReadDir},
			{o.Reach.Devices, reading | landlock.AccessFSWriteFile | landlock.AccessFSIoctlDev},
			{o.threadNames(), landlock.AccessFSWriteFile | landlock.AccessFSTruncate},
		} {
			for _, path := range one.paths {
				if err := grant(set, path, one.rights&rules.HandledAccessFS); err != nil {
					return fmt.Errorf("grant %s: %w", path, err)
				}
			}
		}
	}
	if err := landlock.LandlockRestrictSelf(set, 0); err != nil {
		return fmt.Errorf("the kernel refuses: %w", err)
	}
	return nil
}

// threadNames is where processes have files with the names of their threads, if the
// command may write to them.
func (o order) threadNames() []string {
	if !o.Threads {
		return nil
	}
	return []string{"/proc"}
}

// grant allows what lies below the path. What is not there needs no rule.
func grant(set int, path string, rights uint64) error {
	descriptor, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.Is(err, unix.ENOTDIR) {
		return nil // whoever cannot get there has no use for a right
	}
	if err != nil {
		return err
	}
	defer unix.Close(descriptor)
	var about unix.Stat_t
	if err := unix.Fstat(descriptor, &about); err != nil {
		return err
	}
	if about.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	if rights == 0 {
		return nil
	}
	return landlock.LandlockAddPathBeneathRule(set, &landlock.PathBeneathAttr{AllowedAccess: rights, ParentFd: descriptor}, 0)
}
