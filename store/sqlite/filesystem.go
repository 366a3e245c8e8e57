package sqlite

import "github.com/tandem-tune/tandem/problem"

// networkFilesystems are those where a lock or a shared memory map may not
// reach the other machines, by the number statfs gives them.
var networkFilesystems = map[uint32]string{
	0x6969:     "NFS",
	0x517B:     "SMB",
	0xFE534D42: "SMB",
	0xFF534D42: "CIFS",
	0x564C:     "NCP",
	0x73757245: "Coda",
	0x5346414F: "AFS",
	0x00C36400: "Ceph",
	0x0BD00BD0: "Lustre",
	0x01021997: "9P",
	0x65735546: "FUSE (which may be a network)",
}

// checkFilesystem refuses a folder on a network file system.
func checkFilesystem(folder string, options Options) error {
	if options.AllowNetworkFilesystem {
		return nil
	}
	number, known, err := filesystemNumber(folder)
	if err != nil {
		return problem.New(problem.Unavailable, "find out what file system %s is on: %w", folder, err)
	}
	return refuseNetwork(folder, number, known)
}

func refuseNetwork(folder string, number uint32, known bool) error {
	name, network := networkFilesystems[number]
	if !known || !network {
		return nil
	}
	return problem.New(problem.Invalid,
		"%s is on %s, where SQLite's locks may not hold and the database can be damaged: put it on a local disk, or allow network file systems explicitly if you are sure that only this machine uses it",
		folder, name)
}
