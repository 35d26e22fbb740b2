// Asks the authenticator what the form's data-options say, and sends its answer with the form. On the page of an enrolment link it sends
// the code that the link carries after its #.
(() => {
  "use strict";
  const link = document.querySelector("form[data-link]");
  if (link) {
    const send = () => {
      if (location.hash.length < 2) return;
      link.elements.token.value = location.hash.slice(1);
      history.replaceState(null, "", location.pathname);
      HTMLFormElement.prototype.submit.call(link);
    };
    // The link may be opened where this page is shown already.
    addEventListener("hashchange", send);
    send();
    return;
  }
  const form = document.querySelector("form[data-passkey]");
  if (!form || !window.PublicKeyCredential || !navigator.credentials) return;
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  const text = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const known = ["ble", "hybrid", "internal", "nfc", "smart-card", "usb"];
  const ask = {
    create: async (options) => {
      options.user.id = bytes(options.user.id);
      options.excludeCredentials = (options.excludeCredentials || []).map((held) => ({ ...held, id: bytes(held.id) }));
      const { response, authenticatorAttachment } = await navigator.credentials.create({ publicKey: options });
      const transports = response.getTransports ? response.getTransports().filter((way) => known.includes(way)) : [];
      return { attestationObject: text(response.attestationObject), authenticatorAttachment, response, transports };
    },
    get: async (options) => {
      const { rawId, response, authenticatorAttachment } = await navigator.credentials.get({ publicKey: options });
      return {
        authenticatorAttachment,
        authenticatorData: text(response.authenticatorData),
        id: text(rawId),
        response,
        signature: text(response.signature),
        userHandle: text(response.userHandle || new ArrayBuffer(0)),
      };
    },
  };
  const reasons = {
    InvalidStateError: "This device holds a passkey for this account already.",
    NotAllowedError: "No passkey was used: it was cancelled, took too long, or there is none for this site.",
  };
  form.hidden = false;
  for (const other of document.querySelectorAll("[data-without-passkeys]")) other.hidden = true;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    const status = form.querySelector("[role=status]");
    button.disabled = true;
    status.textContent = "Follow your browser's instructions.";
    try {
      const options = JSON.parse(form.dataset.options);
      options.challenge = bytes(options.challenge);
      const { response, ...answer } = await ask[form.dataset.passkey](options);
      answer.authenticatorAttachment = answer.authenticatorAttachment || null;
      answer.clientDataJSON = text(response.clientDataJSON);
      answer.clientExtensionResults = {};
      answer.type = "public-key";
      form.elements.credential.value = JSON.stringify(answer);
      HTMLFormElement.prototype.submit.call(form);
    } catch (error) {
      status.textContent = reasons[error.name] || "The passkey could not be used. Try again.";
      button.disabled = false;
    }
  });
})();
