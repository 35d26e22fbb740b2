// Adds a button to each snippet that copies it. Without scripts the page is the same without buttons.
for (const box of document.querySelectorAll('.snippet')) {
  const pre = box.firstElementChild;
  const button = document.createElement('button');
  button.className = 'quiet';
  button.type = 'button';
  button.textContent = 'Copy';
  box.append(button);
  button.addEventListener('click', async () => {
    let copied = false;
    try {
      await navigator.clipboard.writeText(pre.textContent);
      copied = true;
    } catch {
      // Over plain HTTP on another machine there is no clipboard: select the text, and copy it the old way.
      const range = document.createRange();
      range.selectNodeContents(pre);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      copied = document.execCommand('copy');
    }
    button.textContent = copied ? 'Copied' : 'Selected';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });
}
