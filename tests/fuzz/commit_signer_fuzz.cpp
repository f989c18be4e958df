#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "app-proxy/git/commit_signer.hpp"
#include "common/core/encoding.hpp"

// A file that is to be an SSH key. The first byte chooses whether the rest is the whole file, or the
// bytes that stand in Base64 between its first and its last line.
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using gitops::app_proxy::CommitSigner;
  if (size < 1) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  std::string file(rest);
  if ((data[0] & 1U) != 0) {
    file = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + gitops::base64_encode(rest) +
           "\n-----END OPENSSH PRIVATE KEY-----\n";
  }
  const auto signer = CommitSigner::from_openssh_key(file);
  if (!signer) {
    // One of a few sentences, with nothing of the file.
    require(signer.error().message.starts_with("the signing key ") &&
            signer.error().message.size() < 80);
    return 0;
  }
  // Whatever is taken can sign, always alike.
  const auto signature = signer->sign("tree 1\n");
  require(signature.starts_with("-----BEGIN SSH SIGNATURE-----\n"));
  require(signature.ends_with("\n-----END SSH SIGNATURE-----"));
  require(signature == signer->sign("tree 1\n") && signature != signer->sign("tree 2\n"));
  require(signer->public_key().starts_with("ssh-ed25519 AAAA"));
  return 0;
}
