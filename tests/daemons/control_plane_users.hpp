#pragma once

// The accounts of tests with a control plane. The double and the program know the same ones, so the keys have the form
// that the program issues: 24 hexadecimal digits and 43 characters. Each has the word "canary", which no log contains.
namespace gitops::test {

inline constexpr const char* kAccountId = "acc-1";  // acme: Ann administers it, Bob is a member
inline constexpr const char* kOtherAccountId = "acc-2";  // other: Eve administers it
inline constexpr const char* kAnnId = "u-ann";
inline constexpr const char* kBobId = "u-bob";
inline constexpr const char* kEveId = "u-eve";

inline constexpr const char* kAnnKey =
    "aaaaaaaaaaaaaaaaaaaa1111.canary-ann-00000000000000000000000000001111";
inline constexpr const char* kBobKey =
    "bbbbbbbbbbbbbbbbbbbb2222.canary-bob-00000000000000000000000000002222";
inline constexpr const char* kEveKey =
    "eeeeeeeeeeeeeeeeeeee3333.canary-eve-00000000000000000000000000003333";
// Of acme's runtime "prod".
inline constexpr const char* kProdToken =
    "dddddddddddddddddddd4444.canary-runtime-0000000000000000000000004444";

}  // namespace gitops::test
