// An OpenID provider of the library github.com/zitadel/oidc, with its example's storage and login page, for tests.
//
//	oidc-server PORT REDIRECT_URI POST_LOGOUT_REDIRECT_URI
//
// It serves at http://localhost:PORT. The client is "control-plane" with the secret "the secret". The users kim and lee
// have the password "verysecure". POST /test/groups?user=kim&groups=dev,ops sets a user's groups, which are in the claim
// "groups"; POST /test/rotate-keys replaces the key that signs.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

type users map[string]*storage.User

func (u users) GetUserByID(id string) *storage.User { return u[id] }

func (u users) GetUserByUsername(name string) *storage.User {
	for _, user := range u {
		if user.Username == name {
			return user
		}
	}
	return nil
}

func (u users) ExampleClientID() string { return "service" }

// signingKey is an EC key; the example's own are RSA.
type signingKey struct {
	id  string
	key *ecdsa.PrivateKey
}

func newKey(number int) *signingKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return &signingKey{id: fmt.Sprintf("rotated-%d", number), key: key}
}

func (k *signingKey) ID() string                                  { return k.id }
func (k *signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.ES256 }
func (k *signingKey) Key() any                                    { return k.key }

type publicKey struct{ *signingKey }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.ES256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return &k.key.PublicKey }

// client has its claims in the ID token and a page after the logout.
type client struct {
	op.Client
	afterLogout string
}

func (c client) IDTokenUserinfoClaimsAssertion() bool { return true }
func (c client) PostLogoutRedirectURIs() []string     { return []string{c.afterLogout} }

type server struct {
	*storage.Storage
	afterLogout string

	lock    sync.Mutex
	rotated *signingKey // nil: the example's own key
	turns   int
	groups  map[string][]string
}

func (s *server) SigningKey(ctx context.Context) (op.SigningKey, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.rotated != nil {
		return s.rotated, nil
	}
	return s.Storage.SigningKey(ctx)
}

func (s *server) KeySet(ctx context.Context) ([]op.Key, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.rotated != nil {
		return []op.Key{publicKey{s.rotated}}, nil
	}
	return s.Storage.KeySet(ctx)
}

func (s *server) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	found, err := s.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return client{found, s.afterLogout}, nil
}

func (s *server) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, request op.IDTokenRequest, scopes []string) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if groups, ok := s.groups[request.GetSubject()]; ok {
		info.AppendClaims("groups", groups)
	}
	return s.Storage.SetUserinfoFromRequest(ctx, info, request, scopes)
}

func (s *server) control(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && r.URL.Path == "/test/groups":
			s.lock.Lock()
			defer s.lock.Unlock()
			groups := strings.FieldsFunc(r.URL.Query().Get("groups"), func(c rune) bool { return c == ',' })
			s.groups[r.URL.Query().Get("user")] = groups
		case r.Method == http.MethodPost && r.URL.Path == "/test/rotate-keys":
			s.lock.Lock()
			defer s.lock.Unlock()
			s.turns++
			s.rotated = newKey(s.turns)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: oidc-server PORT REDIRECT_URI POST_LOGOUT_REDIRECT_URI")
		os.Exit(2)
	}
	issuer := "http://localhost:" + os.Args[1]
	storage.RegisterClients(storage.WebClient("control-plane", "the secret", os.Args[2]))
	all := users{}
	for _, name := range []string{"kim", "lee"} {
		all[name] = &storage.User{ID: name, Username: name, Password: "verysecure", FirstName: name,
			LastName: "User", Email: name + "@example.test", EmailVerified: true}
	}
	s := &server{Storage: storage.NewStorage(all), afterLogout: os.Args[3], groups: map[string][]string{}}
	router := exampleop.SetupServer(issuer, s, slog.New(slog.NewTextHandler(os.Stderr, nil)), false)
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+os.Args[1], s.control(router)))
	os.Exit(1)
}
