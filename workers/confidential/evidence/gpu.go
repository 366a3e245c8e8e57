package evidence

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// GPU is what one GPU of NVIDIA shows.
type GPU struct {
	// Report is a request of SPDM 1.1 with the GPU's signed answer, as NVML hands it out.
	Report []byte `json:"report"`
	// Chain are the certificates of the key that signed it, as PEM, the GPU's own first.
	Chain []byte `json:"chain"`
	// DevTools says that developers' tools may look into the GPU. It is the word of the
	// program that asked: no field of the report says it.
	DevTools bool `json:"devtools,omitempty"`
}

// The lists of what NVIDIA revoked: by its root, and by its authority for the architecture.
const (
	GPURootRevoked = "gpu_root_crl"
	GPURevoked     = "gpu_crl"
)

// GPUDocuments are the names of collateral for GPUs.
var GPUDocuments = []string{GPURootRevoked, GPURevoked}

// Bounds of what a machine shows of GPUs.
const (
	mostGPUs  = 16
	mostChain = 5 // the key of a report, the GPU, who provisioned it, its architecture, the root
)

// GPUClaims is what a GPU says whose signature was found good.
type GPUClaims struct {
	// Arch is hopper or blackwell, by the GPU's certificates.
	Arch, Driver, VBIOS string
	// DevTools is [GPU]'s; OpenLinks says that what GPUs send each other is not encrypted.
	DevTools, OpenLinks bool
	Nonce               []byte
	// Measurements are hashes in hexadecimal, numbered from 0 as in NVIDIA's lists.
	Measurements map[int]string
	// Collateral is as in [Claims].
	Collateral time.Time
}

func (c GPUClaims) String() string {
	return fmt.Sprintf("%s, driver %s, VBIOS %s", c.Arch, c.Driver, c.VBIOS)
}

// Digest is of what all GPUs show, in their order; nil: there are none.
func (e *Evidence) Digest() []byte {
	if len(e.GPU) == 0 {
		return nil
	}
	sum := sha256.New()
	for _, one := range e.GPU {
		for _, part := range [][]byte{one.Report, one.Chain, strconv.AppendBool(nil, one.DevTools)} {
			sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // never fails
			sum.Write(part)
		}
	}
	return sum.Sum(nil)
}

// verifyGPUs adds what the GPUs claim, each by a chain of its own.
func (e *Evidence) verifyGPUs(roots *Roots, now time.Time, claims *Claims) error {
	claims.GPUDigest = e.Digest()
	known := map[string]int{}
	for i, one := range e.GPU {
		found, chain, err := one.Verify(roots, now)
		if err == nil {
			found.Collateral, err = e.gpuRevoked(chain, now)
		}
		if err != nil {
			return err
		}
		key := string(chain[1].RawSubjectPublicKeyInfo)
		if before, twice := known[key]; twice {
			return Refuse("gpu_not_bound", "reports %d and %d are of one GPU", before, i)
		}
		known[key] = i
		claims.GPUs = append(claims.GPUs, *found)
	}
	return nil
}

func (e *Evidence) gpuRevoked(chain []*x509.Certificate, now time.Time) (oldest time.Time, err error) {
	for i, name := range GPUDocuments {
		document, has := e.Collateral[name]
		if !has {
			return time.Time{}, nil
		}
		found, err := list(name, document.Body, chain[mostChain-1-i], now)
		if err == nil {
			err = revoked(found, chain[mostChain-2-i])
		}
		if err != nil {
			return oldest, err
		}
		oldest = earlier(oldest, found.ThisUpdate)
	}
	return oldest, nil
}

// architectures are named in the certificate below the root.
var architectures = regexp.MustCompile(`^NVIDIA (GH|GB)[0-9]+ Identity$`)

// firmwareID is the extension that says for which firmware of the GPU a key was made.
var firmwareID = asn1.ObjectIdentifier{2, 23, 133, 5, 4, 1}

// Verify is what one GPU says by itself, and its certificates.
func (g GPU) Verify(roots *Roots, now time.Time) (*GPUClaims, []*x509.Certificate, error) {
	report, err := readSPDM(g.Report)
	if err != nil {
		return nil, nil, err
	}
	chain, err := certificates(g.Chain)
	if err != nil || len(chain) != mostChain {
		return nil, nil, Refuse("malformed_evidence", "a GPU has %d certificates in its chain, not %d: %v", len(chain), mostChain, err)
	}
	between := x509.NewCertPool()
	for i, one := range chain[:mostChain-1] {
		if err := one.CheckSignatureFrom(chain[i+1]); err != nil {
			return nil, nil, Refuse("untrusted_root", "the certificate %q is not signed by the next one: %v", one.Subject.CommonName, err)
		}
		between.AddCert(one)
	}
	for _, one := range []*x509.Certificate{chain[mostChain-1], chain[0]} {
		if err := chained(one, x509.VerifyOptions{Roots: roots.NVIDIA, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			return nil, nil, err
		}
	}
	key, is := chain[0].PublicKey.(*ecdsa.PublicKey)
	sum := sha512.Sum384(report.signed)
	r, s := new(big.Int).SetBytes(report.signature[:48]), new(big.Int).SetBytes(report.signature[48:])
	if !is || !ecdsa.Verify(key, sum[:], r, s) {
		return nil, nil, Refuse("bad_signature", "the GPU's report was changed")
	}
	arch := architectures.FindStringSubmatch(chain[mostChain-2].Subject.CommonName)
	if arch == nil {
		return nil, nil, Refuse("product_not_allowed", "the certificates are of %q: reports of the GPUs Hopper and Blackwell can be read", chain[mostChain-2].Subject.CommonName)
	}
	claims, err := report.claims(chain[0])
	if err != nil {
		return nil, nil, err
	}
	claims.Arch, claims.DevTools = map[string]string{"GH": "hopper", "GB": "blackwell"}[arch[1]], g.DevTools
	return claims, chain, nil
}

// spdm is a report taken apart.
type spdm struct {
	nonce, signed, signature []byte
	measurements             map[int]string
	said                     map[int][]byte // what the GPU says besides, by its kind
}

// The kinds of what a GPU says besides its measurements, as NVIDIA's verifier names them.
const (
	saidDriver       = 3
	saidVBIOS        = 6
	saidFirmware     = 20
	saidProtected    = 21 // Protected PCIe, in which links between GPUs are in the clear
	saidFeature      = 36 // the same in newer reports
	protectedOn      = 0xAA
	featureProtected = 2
)

// cutter takes parts off the front of bytes.
type cutter struct {
	rest  []byte
	short bool // something was not there
}

func (c *cutter) take(n int) (part []byte) {
	if n > len(c.rest) {
		c.rest, c.short = nil, true
		return nil
	}
	part, c.rest = c.rest[:n], c.rest[n:]
	return part
}

// number takes one whose lowest byte is the first.
func (c *cutter) number(size int) (n int) {
	for i, one := range c.take(size) {
		n |= int(one) << (8 * i)
	}
	return n
}

const spdmSignature = 96 // ECDSA over P-384: both numbers

// readSPDM takes a report apart: DSP0274 1.1, GET_MEASUREMENTS and MEASUREMENTS.
func readSPDM(raw []byte) (*spdm, error) {
	malformed := func(what string) (*spdm, error) {
		return nil, Refuse("malformed_evidence", "the GPU's report of %d bytes: %s", len(raw), what)
	}
	found := &spdm{measurements: map[int]string{}, said: map[int][]byte{}}
	c := &cutter{rest: raw}
	asked := c.take(4)
	found.nonce = c.take(32)
	c.take(1) // the slot of the certificates
	answered := c.take(4)
	blocks := c.number(1)
	record := &cutter{rest: c.take(c.number(3))}
	c.take(32) // the GPU's own nonce
	more := &cutter{rest: c.take(c.number(2))}
	found.signature = c.take(spdmSignature)
	switch {
	case c.short || len(c.rest) > 0:
		return malformed("it is cut off, or something follows")
	case !bytes.HasPrefix(asked, []byte{0x11, 0xe0}) || !bytes.HasPrefix(answered, []byte{0x11, 0x60}):
		return malformed("it is no request of SPDM 1.1 for measurements with its answer")
	}
	found.signed = raw[:len(raw)-spdmSignature]
	for range blocks {
		index, specification := record.number(1), record.number(1)
		block := &cutter{rest: record.take(record.number(2))}
		block.take(1) // the kind of the measurement
		value := block.take(block.number(2))
		_, twice := found.measurements[index-1]
		if record.short || block.short || len(block.rest) > 0 || specification != 1 || index == 0 || twice {
			return malformed("its measurements cannot be read")
		}
		found.measurements[index-1] = hex.EncodeToString(value)
	}
	for len(more.rest) > 0 {
		kind := more.number(2)
		value := more.take(more.number(2))
		if _, twice := found.said[kind]; twice || more.short {
			return malformed("what it says besides measurements cannot be read")
		}
		found.said[kind] = value
	}
	if len(record.rest) > 0 || blocks == 0 {
		return malformed("it has other measurements than it says")
	}
	return found, nil
}

var driverVersion = regexp.MustCompile(`^[0-9][0-9.]{0,31}$`)

// claims is what the report says, for a key that was made for the firmware that it names.
func (s *spdm) claims(signer *x509.Certificate) (*GPUClaims, error) {
	made := false
	for _, one := range signer.Extensions {
		made = made || one.Id.Equal(firmwareID) && len(s.said[saidFirmware]) == sha512.Size384 && bytes.HasSuffix(one.Value, s.said[saidFirmware])
	}
	driver, vbios := strings.TrimRight(string(s.said[saidDriver]), "\x00"), s.said[saidVBIOS]
	switch {
	case !made:
		return nil, Refuse("malformed_evidence", "the GPU's key was made for other firmware than its report names")
	case !driverVersion.MatchString(driver) || len(vbios) != 8:
		return nil, Refuse("malformed_evidence", "the GPU's report names no driver and no VBIOS")
	}
	return &GPUClaims{
		Driver: driver, VBIOS: fmt.Sprintf("%02x.%02x.%02x.%02x.%02x", vbios[3], vbios[2], vbios[1], vbios[0], vbios[4]),
		OpenLinks: bytes.Equal(s.said[saidProtected], []byte{protectedOn}) || bytes.Equal(s.said[saidFeature], []byte{featureProtected}),
		Nonce:     bytes.Clone(s.nonce), Measurements: s.measurements,
	}, nil
}
