// Judges checkpoints, cosignatures and proofs with Go's golang.org/x/mod/sumdb/note and sumdb/tlog, and speaks C2SP
// tlog-witness on top of them from both sides:
//
//	judge verify   reads cases as JSON from standard input and prints one line for each
//	judge log      is a log: sends checkpoints of its own trees to the witnesses at the addresses it is given
//	judge witness  is a witness: listens on a free port and prints its verifier key and address
package main

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// cosigner verifies cosignature/v1, which sumdb/note does not know.
type cosigner struct {
	name string
	key  ed25519.PublicKey
}

func (c cosigner) Name() string { return c.name }
func (c cosigner) KeyHash() uint32 {
	h := sha256.New()
	h.Write([]byte(c.name + "\n\x04"))
	h.Write(c.key)
	return binary.BigEndian.Uint32(h.Sum(nil))
}
func (c cosigner) Verify(msg, sig []byte) bool {
	if len(sig) != 72 {
		return false
	}
	signed := fmt.Sprintf("cosignature/v1\ntime %d\n%s", binary.BigEndian.Uint64(sig), msg)
	return ed25519.Verify(c.key, []byte(signed), sig[8:])
}

func parseCosigner(vkey string) cosigner {
	parts := strings.SplitN(vkey, "+", 3)
	data, err := base64.StdEncoding.DecodeString(parts[2])
	check(err)
	c := cosigner{parts[0], data[1:]}
	if data[0] != 4 || fmt.Sprintf("%08x", c.KeyHash()) != parts[1] {
		check(fmt.Errorf("%s is not the key of a witness", vkey))
	}
	return c
}

type verifyCase struct {
	Name        string   `json:"name"`
	Kind        string   `json:"kind"`
	Log         string   `json:"log"`
	Witnesses   []string `json:"witnesses"`
	Checkpoint  string   `json:"checkpoint"`
	Old         string   `json:"old"`
	Index       int64    `json:"index"`
	Entry       string   `json:"entry"`
	Proof       []string `json:"proof"`
	WantSigners int      `json:"signers"`
}

// tree opens a checkpoint and returns how many known keys have signed it.
func tree(checkpoint, log string, witnesses []string) (tlog.Tree, int, error) {
	verifier, err := note.NewVerifier(log)
	if err != nil {
		return tlog.Tree{}, 0, err
	}
	known := []note.Verifier{verifier}
	for _, vkey := range witnesses {
		known = append(known, parseCosigner(vkey))
	}
	opened, err := note.Open([]byte(checkpoint), note.VerifierList(known...))
	if err != nil {
		return tlog.Tree{}, 0, err
	}
	lines := strings.Split(opened.Text, "\n")
	if lines[0] != verifier.Name() {
		return tlog.Tree{}, 0, fmt.Errorf("the origin is %s", lines[0])
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return tlog.Tree{}, 0, err
	}
	hash, err := tlog.ParseHash(lines[2])
	return tlog.Tree{N: size, Hash: hash}, len(opened.Sigs), err
}

func hashes(texts []string) (list []tlog.Hash, err error) {
	for _, text := range texts {
		hash, err := tlog.ParseHash(text)
		if err != nil {
			return nil, err
		}
		list = append(list, hash)
	}
	return list, nil
}

func judge(c verifyCase) error {
	head, signers, err := tree(c.Checkpoint, c.Log, c.Witnesses)
	if err != nil {
		return err
	}
	proof, err := hashes(c.Proof)
	if err != nil {
		return err
	}
	switch c.Kind {
	case "checkpoint":
		if signers != c.WantSigners {
			return fmt.Errorf("%d signers", signers)
		}
		return nil
	case "inclusion":
		entry, err := base64.StdEncoding.DecodeString(c.Entry)
		if err != nil {
			return err
		}
		return tlog.CheckRecord(proof, head.N, head.Hash, c.Index, tlog.RecordHash(entry))
	case "consistency":
		old, _, err := tree(c.Old, c.Log, nil)
		if err != nil {
			return err
		}
		return tlog.CheckTree(proof, head.N, head.Hash, old.N, old.Hash)
	}
	return fmt.Errorf("unknown kind")
}

func verify() {
	var cases []verifyCase
	check(json.NewDecoder(bufio.NewReader(os.Stdin)).Decode(&cases))
	for _, c := range cases {
		if err := judge(c); err != nil {
			fmt.Printf("refused %s: %v\n", c.Name, err)
		} else {
			fmt.Printf("accepted %s\n", c.Name)
		}
	}
}

// memory is a tree in memory.
type memory struct {
	hashes []tlog.Hash
	size   int64
}

func (m *memory) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		list[i] = m.hashes[index]
	}
	return list, nil
}
func (m *memory) add(record string) {
	added, err := tlog.StoredHashes(m.size, []byte(record), m)
	check(err)
	m.hashes = append(m.hashes, added...)
	m.size++
}
func (m *memory) sign(origin string, signer note.Signer) string {
	root, err := tlog.TreeHash(m.size, m)
	check(err)
	signed, err := note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", origin, m.size, root)}, signer)
	check(err)
	return string(signed)
}

func post(url, body string) (int, string) {
	response, err := http.Post(url+"/add-checkpoint", "text/plain", strings.NewReader(body))
	check(err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	check(err)
	return response.StatusCode, string(answer)
}

// log prints its verifier key, waits for a line on standard input, and then sends honest trees and a fork to each witness.
func log(args []string) {
	const origin = "sumdb.example/log"
	skey, vkey, err := note.GenerateKey(rand.Reader, origin)
	check(err)
	signer, err := note.NewSigner(skey)
	check(err)
	fmt.Println(vkey)
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadString('\n')
	check(err)
	for _, pair := range strings.Fields(line) {
		at := strings.LastIndex(pair, "@")
		witness, url := parseCosigner(pair[:at]), pair[at+1:]
		honest := &memory{}
		old := int64(0)
		for i := 0; i < 40; i++ {
			honest.add(fmt.Sprintf("record %d", i))
			if i%3 == 1 {
				continue
			}
			var proof tlog.TreeProof
			if old > 0 {
				proof, err = tlog.ProveTree(honest.size, old, honest)
				check(err)
			}
			checkpoint := honest.sign(origin, signer)
			status, answer := post(url, request(old, proof, checkpoint))
			if status != 200 {
				check(fmt.Errorf("size %d: %d %s", honest.size, status, answer))
			}
			opened, err := note.Open([]byte(checkpoint+answer), note.VerifierList(witness))
			check(err)
			if len(opened.Sigs) != 1 {
				check(fmt.Errorf("no cosignature at size %d", honest.size))
			}
			old = honest.size
		}
		forked := &memory{}
		for i := 0; i < 41; i++ {
			forked.add(fmt.Sprintf("forged %d", i))
		}
		proof, err := tlog.ProveTree(forked.size, old, forked)
		check(err)
		status, _ := post(url, request(old, proof, forked.sign(origin, signer)))
		if status != 422 {
			check(fmt.Errorf("a fork got %d", status))
		}
		status, answer := post(url, request(0, nil, forked.sign(origin, signer)))
		if status != 409 || answer != fmt.Sprintf("%d\n", old) {
			check(fmt.Errorf("a fork from nothing got %d %s", status, answer))
		}
		fmt.Println("done", witness.name)
	}
}

func request(old int64, proof tlog.TreeProof, checkpoint string) string {
	var body bytes.Buffer
	fmt.Fprintf(&body, "old %d\n", old)
	for _, hash := range proof {
		fmt.Fprintf(&body, "%s\n", hash)
	}
	fmt.Fprintf(&body, "\n%s", checkpoint)
	return body.String()
}

// witness cosigns the log whose verifier key is its argument.
func witness(logKey string) {
	const name = "witness.example/sumdb"
	public, private, err := ed25519.GenerateKey(rand.Reader)
	check(err)
	c := cosigner{name, public}
	vkey := fmt.Sprintf("%s+%08x+%s", name, c.KeyHash(), base64.StdEncoding.EncodeToString(append([]byte{4}, public...)))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Printf("witness %s http://%s\n", vkey, listener.Addr())
	var mutex sync.Mutex
	var latest tlog.Tree
	check(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		if err != nil || r.URL.Path != "/add-checkpoint" {
			http.Error(w, "bad request", 400)
			return
		}
		parts := strings.SplitN(string(body), "\n\n", 2)
		lines := strings.Split(parts[0], "\n")
		old, err := strconv.ParseInt(strings.TrimPrefix(lines[0], "old "), 10, 64)
		if err != nil || len(parts) != 2 {
			http.Error(w, "bad request", 400)
			return
		}
		head, _, err := tree(parts[1], logKey, nil)
		if err != nil {
			http.Error(w, err.Error(), 403)
			return
		}
		if old != latest.N {
			w.Header().Set("Content-Type", "text/x.tlog.size")
			w.WriteHeader(409)
			fmt.Fprintf(w, "%d\n", latest.N)
			return
		}
		proof, err := hashes(lines[1:])
		if err == nil && old > 0 {
			err = tlog.CheckTree(proof, head.N, head.Hash, latest.N, latest.Hash)
		}
		if err != nil {
			http.Error(w, err.Error(), 422)
			return
		}
		latest = head
		now := uint64(time.Now().Unix())
		text := strings.SplitN(parts[1], "\n\n", 2)[0] + "\n"
		sig := make([]byte, 12, 76)
		binary.BigEndian.PutUint32(sig, c.KeyHash())
		binary.BigEndian.PutUint64(sig[4:], now)
		sig = append(sig, ed25519.Sign(private, []byte(fmt.Sprintf("cosignature/v1\ntime %d\n%s", now, text)))...)
		fmt.Fprintf(w, "— %s %s\n", name, base64.StdEncoding.EncodeToString(sig))
	})))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	switch os.Args[1] {
	case "verify":
		verify()
	case "log":
		log(os.Args[2:])
	case "witness":
		witness(os.Args[2])
	}
}
