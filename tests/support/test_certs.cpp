#include "support/test_certs.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace gitops::test {
namespace {

bool is_ip_address(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> parsed{};
  return ::inet_pton(AF_INET, text.c_str(), parsed.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), parsed.data()) == 1;
}

std::string subject_section(const std::string& common_name, const std::string& organization) {
  std::string text = "[req]\nprompt=no\nutf8=yes\ndistinguished_name=subject\n[subject]\n";
  if (!organization.empty()) text += "O=" + organization + "\n";
  if (!common_name.empty()) text += "CN=" + common_name + "\n";
  return text;
}

/// Replaces the certificate by one of the same key that ended a day ago; `openssl req` makes none.
void expire(const Certificate& made, const std::string& config_file, const Certificate& authority) {
  const std::string request = made.cert_file.string() + ".csr";
  run_or_throw({"openssl", "req", "-new", "-key", made.key_file.string(), "-config", config_file,
                "-out", request});
  run_or_throw({"openssl", "x509", "-req", "-in", request, "-CA", authority.cert_file.string(),
                "-CAkey", authority.key_file.string(), "-CAcreateserial", "-extfile", config_file,
                "-extensions", "extensions", "-days", "-1", "-out", made.cert_file.string()});
}

/// `config` describes the certificate completely, so the machine's openssl.cnf, which makes every
/// self-signed certificate a CA, is not used.
Certificate make_certificate(const std::filesystem::path& base, const std::string& config,
                             const Certificate* authority, int days) {
  const std::string name = base.string();
  const Certificate made{
      .cert_file = name + ".crt", .key_file = name + ".key", .pem_file = name + ".pem"};
  const std::string config_file = name + ".cnf";
  write_file(config_file, config);
  std::vector<std::string> command = {"openssl",     "req",
                                      "-x509",       "-newkey",
                                      "ec",          "-nodes",
                                      "-pkeyopt",    "ec_paramgen_curve:prime256v1",
                                      "-config",     config_file,
                                      "-extensions", "extensions",
                                      "-days",       std::to_string(std::max(days, 1)),
                                      "-keyout",     made.key_file.string(),
                                      "-out",        made.cert_file.string()};
  if (authority != nullptr) {
    command.insert(command.end(),
                   {"-CA", authority->cert_file.string(), "-CAkey", authority->key_file.string()});
  }
  // An empty section is a mistake to openssl.
  if (config.contains("[subject]\n[")) command.insert(command.end(), {"-subj", "/"});
  run_or_throw(command);
  if (days == 0) expire(made, config_file, *authority);
  write_file(made.pem_file, read_file(made.cert_file) + read_file(made.key_file));
  return made;
}

}  // namespace

CertificateAuthority::CertificateAuthority(const std::string& common_name)
    : folder_("gitops-certs") {
  const std::string config = subject_section(common_name, "") +
                             "[extensions]\n"
                             "basicConstraints=critical,CA:TRUE\n"
                             "keyUsage=critical,keyCertSign,cRLSign,digitalSignature\n"
                             "subjectKeyIdentifier=hash\n";
  authority_ = make_certificate(folder_ / "ca", config, nullptr, 2);
}

Certificate CertificateAuthority::issue(const CertificateRequest& request) {
  std::string config = subject_section(request.common_name, request.organization) +
                       "[extensions]\n"
                       "basicConstraints=critical,CA:FALSE\n"
                       "keyUsage=critical,digitalSignature\n"
                       "extendedKeyUsage=" +
                       request.usages +
                       "\n"
                       "subjectKeyIdentifier=hash\n"
                       "authorityKeyIdentifier=keyid\n";
  std::string names;
  for (const std::string& name : request.alt_names) {
    if (!names.empty()) names += ',';
    names += (is_ip_address(name) ? "IP:" : "DNS:") + name;
  }
  if (!names.empty()) config += "subjectAltName=" + names + "\n";
  return make_certificate(folder_ / ("leaf-" + std::to_string(++issued_)), config, &authority_,
                          request.days);
}

RsaCertificate make_rsa_certificate(int bits) {
  const TempDir folder("gitops-rsa");
  const auto key = folder / "key.pem";
  const auto cert = folder / "cert.pem";
  run_or_throw({"openssl", "genrsa", "-traditional", "-out", key.string(), std::to_string(bits)});
  run_or_throw({"openssl", "req", "-x509", "-new", "-key", key.string(), "-subj", "/", "-days",
                "3650", "-out", cert.string()});
  return {.certificate = read_file(cert), .private_key = read_file(key)};
}

void make_rsa_key(const std::filesystem::path& file) {
  run_or_throw({"openssl", "genrsa", "-out", file.string(), "2048"});
}

}  // namespace gitops::test
