import { describe, expect, test } from 'vitest'
import { findOutOfReach } from './out-of-reach.ts'

describe('a task that plainly asks for a translation', () => {
  test.each([
    'Translate this into French: Good morning.',
    'Translate "Good morning" to Spanish',
    'translate to german: where is the station',
    'Please translate the following paragraph into Brazilian Portuguese.\n\nOur office is closed on Monday.',
    'Can you translate this email from Dutch?\n\nGeachte heer, uw pakket is onderweg.',
    'I need you to translate our press release into Japanese and keep the names.',
    'Translate: Bonjour tout le monde',
    'Translate this sentence.\n\nThe water will be off on Tuesday.',
    'Translate the text below into simplified Chinese.\n\nThe meeting is at nine.',
    'Geachte heer, uw pakket is vandaag onderweg naar u.\n\nTranslate the above into English.',
    'How do you say "thank you" in Korean?',
    'Give me the French translation of "the early bird".',
    'I need a translation of this letter into Polish.',
    'Rewrite this in Spanish: We open at nine.',
    'Translate "Hello. How are you?" into French.',
    'Traduis ce texte en anglais : Bonjour.',
    'Peux-tu traduire cette lettre en allemand ?',
    'Übersetze diesen Satz ins Englische: Guten Tag.',
    'Kannst du das bitte ins Englische übersetzen?',
    'Bitte übersetzen Sie den folgenden Text auf Spanisch.',
    'Traduce esto al inglés: buenos días',
    '¿Puedes traducir este correo al francés?',
    'Traduza este texto para o inglês: bom dia',
    'Traduci questa frase in inglese: buongiorno',
    'Vertaal deze zin naar het Engels: goedemorgen',
    'Przetłumacz ten tekst na angielski: dzień dobry',
    'Переведи этот текст на английский: доброе утро',
    '请把这句话翻译成英文:早上好',
    'これを英語に翻訳してください。',
    '이 문장을 영어로 번역해 줘',
    'Bu metni İngilizceye çevir: günaydın',
    'ترجم هذا النص إلى الإنجليزية',
  ])('%s', (task) => expect(findOutOfReach(task)).toBe('translation'))
})

describe('a task that plainly asks for an image', () => {
  test.each([
    'Draw a picture of a cat.',
    'Generate an image of a sunset over the sea',
    'Create a logo for my coffee shop.',
    'Please design a minimalist black and white logo for Acme.',
    'Could you draw me a logo?',
    'Make me a picture of a red bicycle in the rain.',
    'I need a logo for my bakery.',
    'Generate a photo of a mountain lake.',
    'draw a cat',
    'Dessine-moi une image de chat.',
    'Génère une image de coucher de soleil',
    'Zeichne ein Bild von einem Hund.',
    'Erstelle mir ein modernes Logo für meine Bäckerei',
    'Dibuja una imagen de un perro',
    'Diseña un logotipo para mi panadería',
    'Crie uma imagem de um gato',
    'Crea un logo per la mia pizzeria',
    'Maak een afbeelding van een hond',
    'Нарисуй картинку с котом',
    '画一张猫的图片',
    '猫の画像を生成してください',
    '고양이 그림을 그려 줘',
  ])('%s', (task) => expect(findOutOfReach(task)).toBe('image'))
})

describe('a task that mentions a translation or an image and asks for something else is attempted', () => {
  test.each([
    'x',
    'hello',
    'test task',
    'Write a post about our translation service',
    'Review this image-resize code',
    'A joke about translators',
    'Tell me a joke about a translator who lost a word in French.',
    'Summarise this email:\n\nPlease translate the contract into French by Friday.',
    'Explain how to translate a document into French.',
    'Can you explain how machine translation into German works?',
    'Compare DeepL and Google for translating into Japanese.',
    'Translate this.',
    'Translate these requirements into user stories.',
    'Translate our strategy into action items for the sales team.',
    'Translate this Python function into JavaScript.',
    'Translate this into plain English: the party of the first part shall indemnify.',
    'Translate the findings into a budget.',
    'Translate this into Latin American market strategy.',
    'The customer says: "I asked you to translate my invoice into Spanish and nobody did." Reply to them.',
    'Fix the grammar: translate this in french please',
    'How much does it cost to translate a website into Dutch?',
    'Write a job advert for a French translator.',
    'Write a short poem in French about the sea.',
    'Review this code:\n```js\nfunction translate(text, to) { return text }\n```',
    'Draft an email that asks the agency for the French translation of our terms.',
    'Create an image resize function in Python',
    'Create a Docker image for my Node app',
    'Give me a clear picture of our finances.',
    'Give me the big picture.',
    'Draw a conclusion from these numbers: 3, 4, 5',
    'Draw a comparison between leasing and buying.',
    'Draw up a plan for the launch.',
    'Generate an image sitemap for example.com',
    'Create an image description for a red bicycle.',
    'Write a design brief for a logo.',
    'Write a prompt for an image generator.',
    'What makes a good logo?',
    'Analyse how our logo change affected sales: 100, 120, 90',
    'Make a list of image formats.',
    'Design a logo upload API.',
    'Generate an image with PIL in Python.',
    'Tell me a joke about a photographer who draws a picture.',
    'Summarise: Generate an image of a sunset, said the boss, and translate it to French.',
    'Écris un article sur notre service de traduction',
    'Traduis ces besoins en user stories',
    'Schreibe einen Beitrag über unseren Übersetzungsdienst',
    'Escribe un artículo sobre la traducción automática',
    '写一篇关于翻译服务的文章',
    '翻訳サービスについて書いてください',
    'Erkläre die Bildbearbeitung in Photoshop.',
    'Напиши статью о бюро переводов',
  ])('%s', (task) => expect(findOutOfReach(task)).toBeUndefined())
})

test('a text too hard to read within its budget is attempted, not refused', () => {
  for (const part of ['translate ', 'translate this into ', 'draw a ', '翻译成', '"', '. '])
    expect(() => findOutOfReach(part.repeat(4_000))).not.toThrow()
})

describe('of a long task', () => {
  const text = 'The office is closed on Monday. '.repeat(1_000)
  test.each([
    ['a request at the beginning is read', `Translate this into French: ${text}`, 'translation'],
    ['a request at the end is read', `${text}\n\nTranslate the above into French.`, 'translation'],
    ['what is between them is material', `Count the words.\n\n${text}Translate it.${text}`, undefined],
    ['one sign is no request', '.'.repeat(32_000), undefined],
  ])('%s', (_, task, expected) => {
    expect(findOutOfReach(task)).toBe(expected)
  })
})
