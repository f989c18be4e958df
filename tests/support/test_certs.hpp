#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace gitops::test {

/// Files in PEM form. The CertificateAuthority that issued them owns them.
struct Certificate {
  std::filesystem::path cert_file;
  std::filesystem::path key_file;
  std::filesystem::path pem_file;  // certificate and key in one file, for lighttpd
};

struct CertificateRequest {
  std::string common_name;             // without it and an organization: an empty subject
  std::string organization;            // Kubernetes takes it as the client's group
  std::vector<std::string> alt_names;  // DNS names and IP addresses
  int days = 2;                        // 0: a certificate that has expired
  std::string usages = "serverAuth,clientAuth";
};

/// A private certificate authority for one test: EC P-256 keys made by the openssl command, in a
/// temporary folder that the object owns.
/// Throws when openssl is missing or fails.
class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& common_name = "Test CA");

  const std::filesystem::path& ca_file() const { return authority_.cert_file; }
  const std::filesystem::path& folder() const { return folder_.path(); }
  Certificate issue(const CertificateRequest& request);

 private:
  TempDir folder_;
  Certificate authority_;
  int issued_ = 0;
};

/// A self-signed certificate of an RSA key, and the key, both in PEM.
struct RsaCertificate {
  std::string certificate;
  std::string private_key;
};
RsaCertificate make_rsa_certificate(int bits = 2048);

/// Writes a new RSA private key, for signers of tokens.
void make_rsa_key(const std::filesystem::path& file);

}  // namespace gitops::test
