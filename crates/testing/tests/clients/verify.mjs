// Verifies a token with jose and prints its subject, or the code of the error.
import { createLocalJWKSet, jwtVerify } from "jose";

const [keys, token] = process.argv.slice(2);
try {
  const { payload } = await jwtVerify(token, createLocalJWKSet(JSON.parse(keys)), {
    issuer: "https://test-issuer.local",
    audience: "test-audience",
    typ: "at+jwt",
  });
  console.log(payload.sub);
} catch (error) {
  console.log(error.code);
}
