package hooks

import "net/netip"

// MayReach decides on an address with the networks that are allowed.
func MayReach(address string, encrypted bool, allowed ...netip.Prefix) error {
	return (&Service{options: Options{Allowed: allowed}}).mayReach(netip.MustParseAddrPort(address).Addr(), encrypted)
}
