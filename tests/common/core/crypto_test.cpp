#include "common/core/crypto.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/encoding.hpp"
#include "support/process.hpp"
#include "support/test_certs.hpp"

namespace gitops {
namespace {

std::string hex(const Sha256Sum& sum) {
  return hex_encode(bytes_of(sum));
}

// "0a1b" as bytes.
std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(hex_value(text[i]) * 16 + hex_value(text[i + 1]));
  }
  return bytes;
}

// FIPS 180-4, examples of NIST for SHA-256.
TEST(Sha256, AgreesWithNist) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, TakesPartsAsOneText) {
  Sha256 hash;
  for (const auto* part : {"", "a", "", "bc"}) hash.add(part);
  EXPECT_EQ(hash.finish(), sha256("abc"));
}

// FIPS 180-4, examples of NIST for SHA-1.
TEST(Sha1, AgreesWithNist) {
  EXPECT_EQ(hex_encode(bytes_of(sha1("abc"))), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex_encode(bytes_of(sha1({}))), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

// RFC 1321, appendix A.5.
TEST(Md5, AgreesWithRfc1321) {
  EXPECT_EQ(hex_encode(bytes_of(md5({}))), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(hex_encode(bytes_of(md5("message digest"))), "f96b697d7cb7938d525a2f31aaf161d0");
}

// RFC 6070, test vectors 1, 2 and 5.
TEST(Pbkdf2, AgreesWithRfc6070) {
  const auto derived = [](std::string_view password, std::string_view salt, unsigned iterations,
                          std::size_t size) {
    return hex_encode(pbkdf2_hmac_sha1(password, salt, iterations, size).reveal());
  };
  EXPECT_EQ(derived("password", "salt", 1, 20), "0c60c80f961f0e71f3a9b524af6012062fe037a6");
  EXPECT_EQ(derived("password", "salt", 2, 20), "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957");
  EXPECT_EQ(derived("passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096, 25),
            "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038");
}

// NIST SP 800-38A, F.3.13 and F.3.14.
TEST(Aes128Cfb, AgreesWithNistHoweverTheBytesAreSplit) {
  const Secret key(from_hex("2b7e151628aed2a6abf7158809cf4f3c"));
  const auto iv = from_hex("000102030405060708090a0b0c0d0e0f");
  const auto plain = from_hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
  const auto hidden = from_hex("3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b");
  for (const std::size_t piece : {1U, 5U, 16U, 32U}) {
    Aes128Cfb encrypt(Aes128Cfb::Direction::encrypt, key, iv);
    Aes128Cfb decrypt(Aes128Cfb::Direction::decrypt, key, iv);
    std::string text = plain;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      encrypt.apply(std::span(text).subspan(at, std::min(piece, text.size() - at)));
    }
    EXPECT_EQ(hex_encode(text), hex_encode(hidden)) << "in pieces of " << piece;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      decrypt.apply(std::span(text).subspan(at, std::min(piece, text.size() - at)));
    }
    EXPECT_EQ(hex_encode(text), hex_encode(plain)) << "in pieces of " << piece;
  }
}

TEST(Aes128Cfb, RefusesOtherSizesOfKeyAndIv) {
  const Secret key(std::string(16, 'k'));
  using enum Aes128Cfb::Direction;
  EXPECT_THROW(Aes128Cfb(encrypt, Secret(std::string(15, 'k')), std::string(16, 'i')),
               std::invalid_argument);
  EXPECT_THROW(Aes128Cfb(encrypt, key, std::string(17, 'i')), std::invalid_argument);
}

// RFC 4231, test cases 1 to 4, 6 and 7.
TEST(HmacSha256, AgreesWithRfc4231) {
  const struct {
    std::string key;
    std::string data;
    std::string_view code;
  } cases[] = {
      {std::string(20, '\x0b'), "Hi There",
       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?",
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {from_hex("0102030405060708090a0b0c0d0e0f10111213141516171819"), std::string(50, '\xcd'),
       "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {std::string(131, '\xaa'),
       "This is a test using a larger than block-size key and a larger than block-size data. The "
       "key needs to be hashed before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
  };
  for (const auto& [key, data, code] : cases) {
    EXPECT_EQ(hex(hmac_sha256(key, data)), code);
    HmacSha256 parts(key);
    for (const char c : data) parts.add({&c, 1});
    EXPECT_EQ(hex(parts.finish()), code);
  }
}

TEST(HmacSha256, TakesAnEmptyKeyAndNothing) {
  EXPECT_EQ(hex(hmac_sha256({}, {})),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

// RFC 5869, test cases 1 to 3.
TEST(Hkdf, AgreesWithRfc5869) {
  const std::string secret(22, '\x0b');
  const auto one = hkdf_sha256(secret, from_hex("000102030405060708090a0b0c"),
                               from_hex("f0f1f2f3f4f5f6f7f8f9"), 42);
  EXPECT_EQ(hex_encode(one.reveal()),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
  const auto count_up = [](unsigned from, unsigned to) {
    std::string bytes;
    for (; from <= to; ++from) bytes += static_cast<char>(from);
    return bytes;
  };
  const auto two =
      hkdf_sha256(count_up(0x00, 0x4f), count_up(0x60, 0xaf), count_up(0xb0, 0xff), 82);
  EXPECT_EQ(hex_encode(two.reveal()),
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb4"
            "1c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87");
  const auto three = hkdf_sha256(secret, {}, {}, 42);
  EXPECT_EQ(hex_encode(three.reveal()),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

// Test cases 13 to 16 of the GCM specification that NIST SP 800-38D refers to.
TEST(Seal, AgreesWithTheVectorsOfGcm) {
  const Secret zero(std::string(32, '\0'));
  const std::string zero_nonce(12, '\0');
  EXPECT_EQ(hex_encode(seal(zero, zero_nonce, {})), "530f8afbc74536b9a963b4f1c4cb738b");
  EXPECT_EQ(hex_encode(seal(zero, zero_nonce, std::string(16, '\0'))),
            "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919");

  const Secret key(from_hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"));
  const auto nonce = from_hex("cafebabefacedbaddecaf888");
  const auto plain = from_hex(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6"
      "b525b16aedf5aa0de657ba637b391aafd255");
  const std::string hidden =
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b105682"
      "8"
      "838c5f61e6393ba7a0abcc9f662898015ad";
  EXPECT_EQ(hex_encode(seal(key, nonce, plain)), hidden + "b094dac5d93471bdec1a502270e3cc6c");
  const auto associated = from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  const auto shorter = plain.substr(0, plain.size() - 4);
  const auto sealed = seal(key, nonce, shorter, associated);
  EXPECT_EQ(hex_encode(sealed),
            hidden.substr(0, 2 * shorter.size()) + "76fc6ece0f4e1768cddf8853bb2d551b");
  EXPECT_EQ(unseal(key, nonce, sealed, associated), shorter);
}

TEST(Seal, OpensNothingThatWasChanged) {
  const Secret key(random_bytes(kSealKeySize));
  const auto nonce = random_bytes(kSealNonceSize);
  const auto sealed = seal(key, nonce, "a token", "of user 7");
  ASSERT_EQ(unseal(key, nonce, sealed, "of user 7"), "a token");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    auto changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const auto refused = unseal(key, nonce, changed, "of user 7");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_data);
  }
  EXPECT_FALSE(unseal(key, nonce, sealed, "of user 8"));
  EXPECT_FALSE(unseal(key, nonce, sealed));
  EXPECT_FALSE(unseal(key, random_bytes(kSealNonceSize), sealed, "of user 7"));
  EXPECT_FALSE(unseal(Secret(random_bytes(kSealKeySize)), nonce, sealed, "of user 7"));
  EXPECT_FALSE(unseal(key, nonce, sealed.substr(1), "of user 7"));
  EXPECT_FALSE(unseal(key, nonce, "short", "of user 7"));
}

TEST(Seal, ThrowsForSizesThatAreABug) {
  const auto nonce = random_bytes(kSealNonceSize);
  EXPECT_THROW((void)seal(Secret("short"), nonce, "x"), std::invalid_argument);
  EXPECT_THROW((void)seal(Secret(random_bytes(kSealKeySize)), "n", "x"), std::invalid_argument);
  EXPECT_THROW((void)unseal(Secret("short"), nonce, std::string(20, 'x')), std::invalid_argument);
}

TEST(RandomBytes, AreOfTheSizeAndNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(random_bytes(16));
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_EQ(seen.begin()->size(), 16U);
  EXPECT_EQ(random_bytes(0), "");
}

TEST(EqualInConstantTime, ComparesBytes) {
  EXPECT_TRUE(equal_in_constant_time("", {}));
  EXPECT_TRUE(equal_in_constant_time("secret", "secret"));
  EXPECT_FALSE(equal_in_constant_time("secret", "secreT"));
  EXPECT_FALSE(equal_in_constant_time("secret", "secrets"));
  EXPECT_FALSE(equal_in_constant_time(std::string_view("a\0b", 3), std::string_view("a\0c", 3)));
}

// RFC 8032, section 7.1, TEST 2.
TEST(Ed25519, SignsAsItsSpecificationSays) {
  const Secret seed(from_hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"));
  EXPECT_EQ(hex_encode(ed25519_public_key(seed)),
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  EXPECT_EQ(hex_encode(ed25519_sign(seed, "\x72")),
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  EXPECT_THROW((void)ed25519_sign(Secret("short"), ""), std::invalid_argument);
}

TEST(VerificationKey, AgreesWithTheSpecificationOfEd25519) {
  const auto key = VerificationKey::ed25519(
      from_hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"));
  ASSERT_TRUE(key);
  const auto signature = from_hex(
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
      "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  EXPECT_TRUE(key->verifies(SignatureScheme::ed25519, "\x72", signature));
  EXPECT_FALSE(key->verifies(SignatureScheme::ed25519, "\x73", signature));
  EXPECT_FALSE(key->verifies(SignatureScheme::ed25519, "\x72", ""));
  EXPECT_FALSE(key->verifies(SignatureScheme::ecdsa_p256_sha256, "\x72", signature));
}

// RFC 7515, appendix A.3.
TEST(VerificationKey, AgreesWithTheSpecificationOfEs256) {
  const auto decoded = [](const char* text) { return base64url_decode(text).value_or(""); };
  const auto key = VerificationKey::p256(decoded("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
                                         decoded("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"));
  ASSERT_TRUE(key);
  const std::string text =
      "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt"
      "cGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
  auto signature = decoded(
      "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q");
  EXPECT_TRUE(key->verifies(SignatureScheme::ecdsa_p256_sha256, text, signature));
  EXPECT_FALSE(key->verifies(SignatureScheme::ecdsa_p256_sha256, text + "x", signature));
  signature.front() = static_cast<char>(signature.front() ^ 1);
  EXPECT_FALSE(key->verifies(SignatureScheme::ecdsa_p256_sha256, text, signature));
  EXPECT_FALSE(key->verifies(SignatureScheme::ecdsa_p256_sha256, text, std::string(64, '\0')));
}

TEST(VerificationKey, RefusesWhatIsNoKey) {
  EXPECT_FALSE(VerificationKey::ed25519("short"));
  EXPECT_FALSE(VerificationKey::p256(std::string(32, '\1'), std::string(32, '\1')));
  EXPECT_FALSE(VerificationKey::p256("", ""));
  const std::string exponent("\x01\x00\x01", 3);
  std::string modulus(256, '\xff');
  EXPECT_TRUE(VerificationKey::rsa(modulus, exponent));
  EXPECT_FALSE(VerificationKey::rsa(modulus.substr(1), exponent));
  EXPECT_FALSE(VerificationKey::rsa(std::string(1'025, '\xff'), exponent));
  EXPECT_FALSE(VerificationKey::rsa(modulus, "\x01"));
  EXPECT_FALSE(VerificationKey::rsa(modulus, std::string("\x01\x00", 2)));
  EXPECT_FALSE(VerificationKey::rsa(modulus, std::string(5, '\1')));
  EXPECT_FALSE(VerificationKey::rsa(modulus, ""));
  modulus.back() = '\xfe';
  EXPECT_FALSE(VerificationKey::rsa(modulus, exponent));
}

// Decrypted by the openssl command.
TEST(RsaOaep, IsReadByWhoHasTheKeyAndTheLabel) {
  const auto key = test::make_rsa_certificate();
  const test::TempDir folder;
  test::write_file(folder / "key.pem", key.private_key);
  const auto decrypted = [&](const std::string& hidden, const std::string& label) {
    test::write_file(folder / "hidden", hidden);
    std::vector<std::string> argv{"openssl",
                                  "pkeyutl",
                                  "-decrypt",
                                  "-inkey",
                                  (folder / "key.pem").string(),
                                  "-in",
                                  (folder / "hidden").string()};
    for (const std::string& option :
         {std::string("rsa_padding_mode:oaep"), std::string("rsa_oaep_md:sha256"),
          std::string("rsa_mgf1_md:sha256"), "rsa_oaep_label:" + hex_encode(label)}) {
      if (option.ends_with("label:")) continue;
      argv.insert(argv.end(), {"-pkeyopt", option});
    }
    const auto result = test::run_command(argv);
    return result.exit_code == 0 ? result.out : "refused";
  };
  const auto labelled = rsa_oaep_encrypt(key.certificate, "a key", "ns/name");
  ASSERT_TRUE(labelled);
  EXPECT_EQ(labelled->size(), 256U);
  EXPECT_EQ(decrypted(*labelled, "ns/name"), "a key");
  EXPECT_EQ(decrypted(*labelled, "ns/other"), "refused");
  EXPECT_EQ(decrypted(*labelled, ""), "refused");
  const auto plain = rsa_oaep_encrypt(key.certificate, "a key", "");
  ASSERT_TRUE(plain);
  EXPECT_EQ(decrypted(*plain, ""), "a key");
  EXPECT_NE(*rsa_oaep_encrypt(key.certificate, "a key", ""), *plain);
}

TEST(RsaOaep, RefusesWhatCannotBe) {
  const auto key = test::make_rsa_certificate();
  const auto too_long = rsa_oaep_encrypt(key.certificate, std::string(191, 'x'), "");
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(rsa_oaep_encrypt(key.certificate, std::string(190, 'x'), ""));
  test::CertificateAuthority authority;
  const auto elliptic = test::read_file(authority.ca_file());
  const auto small = test::make_rsa_certificate(1024);
  for (const auto& wrong : {std::string(), std::string("x"), key.private_key, elliptic,
                            small.certificate, key.certificate.substr(0, 200)}) {
    const auto refused = rsa_oaep_encrypt(wrong, "a key", "");
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_data);
  }
}

TEST(RsaOaep, KnowsTheKeyOfACertificate) {
  const auto key = test::make_rsa_certificate();
  const auto other = test::make_rsa_certificate();
  EXPECT_EQ(is_key_of(Secret(key.private_key), key.certificate), true);
  EXPECT_EQ(is_key_of(Secret(other.private_key), key.certificate), false);
  EXPECT_FALSE(is_key_of(Secret("x"), key.certificate));
  EXPECT_FALSE(is_key_of(Secret(key.certificate), key.certificate));
  EXPECT_FALSE(is_key_of(Secret(key.private_key), key.private_key));
  // A key with a password is refused; nobody is asked for it.
  const test::TempDir folder;
  test::write_file(folder / "key.pem", key.private_key);
  const auto locked = test::run_command(
      {"openssl", "rsa", "-aes256", "-passout", "pass:x", "-in", (folder / "key.pem").string()});
  ASSERT_EQ(locked.exit_code, 0) << locked.err;
  EXPECT_FALSE(is_key_of(Secret(locked.out), key.certificate));
}

}  // namespace
}  // namespace gitops
